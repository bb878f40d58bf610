// Figures with their noise, causes, settings that differ, facts of both runs.

function figureValue(figure, value) {
  if (figure.unit === 's') return time(value * 1e9);
  if (figure.unit === 'B') return bytes(value);
  return figure.key === 'loss' ? value.toFixed(4) : scaled(value, '');
}

const signed = (share) => `${share < 0 ? '\u2212' : '+'}${perCent(Math.abs(share))}`;
const isEqual = (figure) => figure.a === figure.b;
const canCompare = () => data.comparability.mismatches.length === 0;
// Nothing is better or worse in runs that cannot be compared.
const kindOf = (figure) => !figure.is_more_than_noise || !canCompare() ? 'within'
  : figure.is_better ? 'better' : 'worse';

function noiseText(figure) {
  if (figure.noise > 0) return `\u00b1${perCent(figure.noise_share)}`;
  return figure.key === 'loss' ? 'one value' : figure.unit === 'B' ? 'exact' : 'none known';
}

// The change from A to B, and the noise around no change. `widest`: of all rows.
function changeBar(figure, widest) {
  const made = element('div', 'change-bar');
  const place = (kind, from, to) => {
    const piece = element('i', kind);
    piece.style.left = `${50 + from / widest * 50}%`;
    piece.style.width = `${Math.max(0, (to - from) / widest * 50)}%`;
    made.append(piece);
  };
  const noise = Math.min(figure.noise_share, widest);
  if (noise > 0) place('noise', -noise, noise);
  place(`value ${kindOf(figure)}`, Math.min(0, figure.change), Math.max(0, figure.change));
  made.append(element('i', 'zero'));
  made.title = figure.judgement;
  return made;
}

function drawFigures() {
  const scale = data.a.time_scale === data.b.time_scale && data.a.clock_note
    ? `; ${data.a.clock_note}` : '';
  byId('figure-unit').textContent = `medians of ${grouped(data.steps_a)} and ` +
    `${grouped(data.steps_b)} steps; noise: three standard errors of both medians${scale}`;
  const columns = [{ title: '' }, { title: 'A', num: true }, { title: 'B', num: true },
    { title: 'difference', num: true }, { title: 'B to A', num: true },
    { title: 'noise', num: true }, { title: '' }, { title: 'less, more' }];
  const draw = (figures) => {
    const widest = Math.max(0.001, ...figures.map((figure) => Math.abs(figure.change)),
      ...figures.map((figure) => Math.min(figure.noise_share, 1)));
    return table(columns, figures.map((figure) => {
      const difference = figure.b - figure.a;
      return [figure.key, figureValue(figure, figure.a), figureValue(figure, figure.b),
        isEqual(figure) ? '0' : `${difference < 0 ? '\u2212' : '+'}` +
          figureValue(figure, Math.abs(difference)),
        element('span', kindOf(figure), isEqual(figure) ? 'the same' : signed(figure.change)),
        noiseText(figure), verdictOf(figure), changeBar(figure, widest)];
    }));
  };
  const isBytes = (figure) => figure.unit === 'B';
  byId('figure-table').append(draw(data.figures.filter((figure) => !isBytes(figure))));
  const moved = data.figures.filter(isBytes);
  if (moved.length === 0) return;
  const details = element('details');
  details.open = moved.some((figure) => !isEqual(figure));
  details.append(element('summary', '', 'Bytes over all links of a kind, a step'), draw(moved));
  byId('figure-table').append(details);
}

function verdictOf(figure) {
  if (isEqual(figure)) return element('span', 'within', '');
  if (!figure.is_more_than_noise) return element('span', 'within', 'within noise');
  return element('span', kindOf(figure), canCompare() ? kindOf(figure) : 'differs');
}

const moreOrLess = (ns) => `${ns < 0 ? '\u2212' : '+'}${time(Math.abs(ns))}`;

// Two bars for each cause, on one scale, and beside that of B what it has more or less.
function drawCauses() {
  const place = byId('cause-bars');
  if (data.causes.length === 0) {
    sayEmpty(place, 'One of the two recorded no operations, so there are no causes to compare; ' +
      'record=transfers or record=all records them.');
    return;
  }
  const longest = Math.max(...data.causes.map((row) => Math.max(row.a_ns, row.b_ns)));
  for (const row of data.causes) {
    const colour = causeColours.get(row.cause) || unknownColour;
    const made = element('div', 'pair-row');
    for (const which of ['a', 'b']) {
      const track = element('div', 'track');
      const fill = hued(element('div', 'fill'), colour);
      fill.style.width = `${row[`${which}_ns`] / longest * 100}%`;
      track.append(fill);
      made.append(which === 'a' ? dot(colour) : element('i'),
        element('span', '', which === 'a' ? row.cause : ''), letter(which), track,
        element('span', 'num', time(row[`${which}_ns`])),
        element('span', 'num within', which === 'a' ? '' : moreOrLess(row.b_ns - row.a_ns)));
    }
    place.append(made);
  }
}

function drawSettings() {
  const columns = [{ title: 'setting' }, { title: 'A' }, { title: 'B' }];
  const differences = Object.entries(data.differences).map(([key, { a, b }]) => [key, a, b]);
  if (differences.length === 0) {
    sayEmpty(byId('setting-table'), 'Both ran with the same settings on the same machine.');
    return;
  }
  byId('setting-table').append(table(columns, differences));
}

function drawFacts() {
  byId('fact-table').append(table([{ title: '' }, { title: 'A' }, { title: 'B' }],
    data.facts.map(([key, ...values]) => [key, ...values.map((value) =>
      (key === 'Parameters' && /^\d+$/.test(value) ? grouped(Number(value)) : value))])));
}
