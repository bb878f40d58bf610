// Curves of the ticked runs, one over the other by step.

const hidden = new Set();  // rows

// As profiler/runs/run_curves.h has it: each value becomes the mean of it and of those before; one
// that is d steps back counts weight ** d.
function smoothed(points, weight) {
  let sum = 0;
  let total = 0;
  let before = null;
  return points.map(([step, value]) => {
    if (value === null) return [step, null];
    const kept = before === null ? 0 : weight ** (step - before);
    sum = kept * sum + value;
    total = kept * total + 1;
    before = step;
    return [step, sum / total];
  });
}

// Axis and heights by powers of ten; values above 0 only.
class LogPlot extends Plot {
  y(value) {
    const height = this.height - margin.top - margin.bottom;
    const share = Math.log(value / this.low) / Math.log(this.high / this.low);
    return margin.top + (1 - share) * height;
  }

  axes() {
    const marks = [];
    for (let power = Math.floor(Math.log10(this.low)); power <= Math.log10(this.high); power += 1)
      marks.push(...[1, 2, 5].map((digit) => Number(`${digit}e${power}`)));
    let values = marks.filter((value) => value >= this.low && value <= this.high);
    if (values.length < 2) values = ticks(this.low, this.high, 4).values;
    this.labelled(values, (value) => String(Number(value.toPrecision(3))));
    this.stepAxis();
  }
}

const plots = [
  { place: 'loss-plot', name: 'loss', smooths: true, none: 'None of these runs has a loss.',
    of: (curves) => curves.points.map((point) => [point[0], point[2]]),
    text: (value) => value.toFixed(4) },
  { place: 'validation-plot', name: 'validation loss', smooths: false,
    none: 'None of these runs was validated.',
    of: (curves) => curves.validations.map((point) => [point[0], point[1]]),
    text: (value) => value.toFixed(4) },
  { place: 'rate-plot', name: 'learning rate', smooths: false, fromZero: true,
    none: 'None of these runs has a learning rate.',
    of: (curves) => curves.points.map((point, i) => [point[0], curves.rates[i]]),
    text: (value) => String(Number(value.toPrecision(4))) },
  { place: 'time-plot', name: 'time', smooths: true, fromZero: true, isTime: true,
    none: 'None of these runs has a step.',
    of: (curves) => curves.points.map((point) => [point[0], point[1]]),
    text: (value) => time(value) },
];

const shownRuns = () => [...chosen.keys()].filter((row) => !hidden.has(row));

function drawLegend() {
  byId('run-legend').replaceChildren(...[...chosen].map(([row, place]) => {
    const button = element('button');
    button.type = 'button';
    button.title = row.name;
    button.setAttribute('aria-pressed', String(!hidden.has(row)));
    button.append(dot(data.run_colours[place]), row.name);
    button.addEventListener('click', () => {
      if (!hidden.delete(row)) hidden.add(row);
      drawPlots();
    });
    return button;
  }));
  byId('curves-unit').textContent = chosen.size === 0 ? 'tick runs in the table'
    : 'a click on a run hides it';
}

// [row, all points, the smoothed ones] of the runs that have any.
function curvesOf(plot, weight, isLog) {
  return shownRuns().map((row) => {
    const points = plot.of(row.curves)
      .map(([step, value]) => [step, isLog && value <= 0 ? null : value]);
    return [row, points, plot.smooths && weight > 0 ? smoothed(points, weight) : points];
  }).filter(([, points]) => points.some(([, value]) => value !== null));
}

function limitsOf(values, plot, isLog) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (isLog) return low < high ? [low / 1.05, high * 1.05] : [low / 2, high * 2];
  if (plot.fromZero) return [0, high * 1.05 || 1];
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return [low - room, high + room];
}

// The value at a step, or at the last one before it that is drawn.
function valueAt(points, step) {
  let found = null;
  for (const [at, value] of points) {
    if (at > step) break;
    if (value !== null) found = [at, value];
  }
  return found;
}

function tipOf(plot, [row, points, smooth], step) {
  const raw = valueAt(points, step);
  if (raw === null) return [row.name, 'not yet'];
  const at = raw[0] === step ? '' : ` (step ${stepNumber(raw[0])})`;
  const mean = smooth === points ? '' : `, smoothed ${plot.text(valueAt(smooth, step)[1])}`;
  return [row.name, `${plot.text(raw[1])}${mean}${at}`];
}

function drawPlot(plot, weight, isLog) {
  const curves = curvesOf(plot, weight, isLog);
  if (curves.length === 0) {
    sayEmpty(byId(plot.place), chosen.size === 0 ? 'No run is ticked.'
      : shownRuns().length === 0 ? 'All ticked runs are hidden.' : plot.none);
    return;
  }
  const all = curves.flatMap(([, points]) => points.filter(([, value]) => value !== null));
  const steps = [...new Set(all.map(([step]) => step))].sort((a, b) => a - b);
  const values = all.map(([, value]) => value);
  const { unit, factor } = plot.isTime ? timeUnit(Math.max(...values)) : { unit: '', factor: 1 };
  if (plot.isTime) byId('time-unit').textContent = `${unit}, by each run's own clock`;
  const [low, high] = limitsOf(values.map((value) => value / factor), plot, isLog);
  const Kind = isLog ? LogPlot : Plot;
  const made = new Kind(byId(plot.place), 200, [steps[0], steps[steps.length - 1]], low, high);
  const draw = (row, points, kind) => {
    const place = chosen.get(row);
    const before = made.root.childElementCount;
    made.curve(points.map(([step, value]) => [step, value === null ? null : value / factor]),
      `run ${kind} ${place >= 4 ? 'dashed' : ''}`);
    [...made.root.children].slice(before)
      .forEach((piece) => hued(piece, data.run_colours[place]));
  };
  for (const [row, points, smooth] of curves) {
    if (smooth !== points) draw(row, points, 'raw');
    draw(row, smooth, '');
  }
  made.hover(steps, (i) => [`step ${stepNumber(steps[i])}`,
    curves.map((curve) => tipOf(plot, curve, steps[i]))]);
}

function drawPlots() {
  const weight = Number(byId('smoothing').value);
  byId('smoothing-value').textContent = weight.toFixed(2);
  plotWidth = Math.max(320, byId('loss-plot').clientWidth || 1180);
  drawLegend();
  for (const plot of plots) drawPlot(plot, weight, byId('logarithmic').checked);
}

function startCurves() {
  byId('smoothing').addEventListener('input', drawPlots);
  byId('logarithmic').addEventListener('change', drawPlots);
  addEventListener('resize', drawPlots);
  drawPlots();
}
