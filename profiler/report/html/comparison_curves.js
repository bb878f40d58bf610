// Time and loss of every step of both runs, one over the other by step.

const runs = [['a', data.a], ['b', data.b]];

function drawPlots() {
  plotWidth = Math.max(320, byId('time-plot').clientWidth || 1180);
  byId('curve-legend').replaceChildren(...runs.map(([which, run]) => {
    const entry = element('span');
    entry.append(letter(which), `${which === 'a' ? 'continuous' : 'dashed'}, ` +
      `${grouped(run.step_count)} steps`);
    return entry;
  }));
  const { unit, factor } = timeUnit(Math.max(...pointsOf(1)));
  byId('time-unit').textContent = unit;
  drawCurve('time-plot', 1, factor, 0, Math.max(...pointsOf(1)) / factor * 1.05);
  const losses = pointsOf(2);
  if (losses.length === 0) {
    sayEmpty(byId('loss-plot'), 'Neither run has a loss that is a number.');
    return;
  }
  const low = Math.min(...losses);
  const high = Math.max(...losses);
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  drawCurve('loss-plot', 2, 1, low - room, high + room);
}

// All values of a column of both runs: 1 time, 2 loss.
function pointsOf(column) {
  return runs.flatMap(([, run]) => run.curves.points.map((point) => point[column]))
    .filter((value) => value !== null);
}

function drawCurve(place, column, factor, low, high) {
  const steps = [...new Set(runs.flatMap(([, run]) => run.curves.points.map((p) => p[0])))]
    .sort((a, b) => a - b);
  const plot = new Plot(byId(place), 190, [steps[0], steps[steps.length - 1]], low, high);
  for (const [which, run] of runs) {
    plot.curve(run.curves.points.map((point) =>
      [point[0], point[column] === null ? null : point[column] / factor]), which);
  }
  plot.changes();
  const byStep = runs.map(([, run]) =>
    new Map(run.curves.points.map((point) => [point[0], point])));
  plot.hover(steps, (i) => [`step ${stepNumber(steps[i])}`, runs.flatMap(([which], r) => {
    const point = byStep[r].get(steps[i]);
    const name = which.toUpperCase();
    if (point === undefined) return [[name, 'no such step']];
    return [[`${name}, time`, time(point[1])],
      [`${name}, loss`, point[2] === null ? 'none' : point[2].toFixed(4)]];
  })]);
}
