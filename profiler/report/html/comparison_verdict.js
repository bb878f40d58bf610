// The top of the page of a comparison: the two runs, whether they can be compared, which is faster.

const letter = (which) => element('span', `letter ${which}`, which.toUpperCase());

function drawRunLine(which) {
  const run = data[which];
  const mode = element('span', run.is_stand_in ? 'stand-in' : '', run.mode);
  byId(`run-${which}`).append(letter(which), `${run.path}: `, mode);
}

function drawHead() {
  byId('name').textContent = data.title;
  drawRunLine('a');
  drawRunLine('b');
}

function drawComparability() {
  const { words, mismatches, same_words, unknown_words, cautions } = data.comparability;
  const place = byId('comparability');
  place.classList.toggle('differs', mismatches.length > 0);
  if (mismatches.length > 0) {
    place.append(element('h2', '', words),
      table(['what differs', 'A', 'B', 'what that means'].map((title) => ({ title })),
        mismatches.map((row) => [row.what, row.a, row.b, row.meaning])));
  }
  const line = (kind, text) => place.append(element('p', kind, text));
  if (same_words) line('empty', `The same in both: ${same_words}.`);
  if (unknown_words) {
    line('caution',
      `Neither run says its ${unknown_words}, so whether that is the same is not known.`);
  }
  for (const caution of cautions) line('caution', caution);
  for (const which of ['a', 'b']) {
    for (const loss of data[which].losses) {
      line('caution', `${which.toUpperCase()}, ${loss.name}: ${grouped(loss.value)}. ` +
        loss.description);
    }
  }
}

function drawVerdict() {
  byId('verdict-title').textContent = data.headline;
  byId('verdict-words').textContent = data.where;
  drawPhaseBars();
}

// Both steps as a strip of phases, on one scale.
function drawPhaseBars() {
  const phases = [...phaseColours].map(([name, colour]) =>
    [data.figures.find((figure) => figure.key === name), colour]).filter(([figure]) => figure);
  const step = data.figures.find((figure) => figure.key === 'step_time');
  if (phases.length === 0) return;
  legend(byId('phase-legend'), phases.map(([figure, colour]) => [figure.key, colour]));
  const longest = Math.max(step.a, step.b);
  for (const which of ['a', 'b']) {
    const row = element('div', 'phase-row');
    const track = element('div', 'track');
    for (const [figure, colour] of phases) {
      const piece = hued(element('div'), colour);
      piece.style.width = `${figure[which] / longest * 100}%`;
      piece.title = `${figure.key} ${time(figure[which] * 1e9)}`;
      track.append(piece);
    }
    row.append(letter(which), track, element('span', 'num', time(step[which] * 1e9)));
    byId('phase-bars').append(row);
  }
}
