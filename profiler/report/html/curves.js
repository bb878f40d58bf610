// The curves from step to step: time, loss, learning rate, and how steps divide into phases.

function drawPlots() {
  plotWidth = Math.max(320, byId('time-plot').clientWidth || 1180);
  drawCurves();
  drawPhases();
}

function drawCurves() {
  const { points, skipped, rates } = data.curves;
  if (points.length === 0) {
    sayEmpty(byId('time-plot'), 'No step has ended.');
    sayEmpty(byId('loss-plot'), 'No step has ended.');
    return;
  }
  const steps = points.map((point) => point[0]);
  const ends = [steps[0], steps[steps.length - 1]];
  const { unit, factor } = timeUnit(Math.max(...points.map((point) => point[1])));
  const isSkipped = new Set(skipped.map((mark) => mark[0]));
  const thinned = data.step_count > points.length
    ? `; ${grouped(points.length)} of ${grouped(data.step_count)} steps are drawn, ` +
      'extremes among them'
    : '';
  const crosses = data.curves.skipped_count > 0
    ? `; crosses: ${grouped(data.curves.skipped_count)} skipped` : '';
  byId('time-unit').textContent = `${unit}${thinned}${crosses}`;
  const validated = new Map(data.curves.validations);
  const accuracies = new Map(data.curves.validations.filter((point) => point.length > 2)
    .map((point) => [point[0], point[2]]));
  const lossText = (loss) => (loss === null ? 'none' : loss.toFixed(4));
  const describe = (i) => [`step ${stepNumber(steps[i])}`, [
    ['time', time(points[i][1])],
    ['loss', lossText(points[i][2])],
    ...(validated.has(steps[i]) ? [['validation', lossText(validated.get(steps[i]))]] : []),
    ...(accuracies.has(steps[i])
      ? [['accuracy', `${(100 * accuracies.get(steps[i])).toFixed(1)} %`]] : []),
    ...(rates[i] === null ? [] : [['learning rate', rateText(rates[i])]]),
    ...(isSkipped.has(steps[i]) ? [['skipped', 'gradients overflowed']] : []),
  ]];
  const highest = Math.max(...points.map((point) => point[1])) / factor;
  const times = new Plot(byId('time-plot'), 190, ends, 0, highest * 1.05);
  times.curve(points.map((point) => [point[0], point[1] / factor]));
  times.changes();
  times.skipped(skipped, (mark) => mark[1] / factor);
  times.hover(steps, describe);
  drawRates(steps, ends, describe);

  const validations =
    data.curves.validations.filter((point) => point[1] !== null && point[0] <= ends[1]);
  const losses = points.map((point) => point[2]).filter((loss) => loss !== null);
  if (losses.length === 0) {
    sayEmpty(byId('loss-plot'), data.is_simulated
      ? 'A simulated step moves no data and computes nothing, so it has no loss.'
      : 'No step has a loss that is a number.');
    return;
  }
  losses.push(...validations.map((point) => point[1]));
  const low = Math.min(...losses);
  const high = Math.max(...losses);
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  const loss = new Plot(byId('loss-plot'), 190, ends, low - room, high + room);
  loss.curve(points.map((point) => [point[0], point[2]]));
  if (validations.length > 0) {
    const lossUnit = accuracies.size > 0 ? 'nats a record' : 'nats a token';
    byId('loss-unit').textContent = `${lossUnit}; green: of the text that is held out`;
    loss.curve(validations, 'validation');
  }
  loss.changes();
  loss.hover(steps, describe);
}

const rateText = (rate) => String(Number(rate.toPrecision(4)));

// None of a simulated run, nor of another program's.
function drawRates(steps, ends, describe) {
  const known = data.curves.rates.filter((rate) => rate !== null);
  byId('rates').hidden = known.length === 0;
  if (known.length === 0) return;
  const power = Math.max(...known) > 0 ? Math.floor(Math.log10(Math.max(...known))) : 0;
  const factor = 10 ** power;
  byId('rate-unit').textContent = power === 0 ? '' : `1e${power}`;
  const plot = new Plot(byId('rate-plot'), 150, ends, 0, Math.max(...known) / factor * 1.05);
  plot.curve(steps.map((step, i) =>
    [step, data.curves.rates[i] === null ? null : data.curves.rates[i] / factor]));
  plot.changes();
  plot.hover(steps, describe);
}

function drawPhases() {
  const { bars, why_empty } = data.phases;
  if (bars.length === 0) {
    sayEmpty(byId('phase-plot'), why_empty);
    return;
  }
  legend(byId('phase-legend'), [...phaseColours]);
  const sums = bars.map((bar) => bar[2] + bar[3] + bar[4]);
  const { unit, factor } = timeUnit(Math.max(...sums));
  const isMean = bars.some((bar) => bar[1] > bar[0]);
  byId('phase-unit').textContent = isMean ? `${unit}, means of neighbouring steps` : unit;
  // Half a step of room beside the first and the last bar.
  const ends = [bars[0][0] - 0.5, bars[bars.length - 1][1] + 0.5];
  const plot = new Plot(byId('phase-plot'), 210, ends, 0, Math.max(...sums) / factor * 1.05);
  bars.forEach((bar) => {
    const gap = (ends[1] - ends[0]) / bars.length > 0 && bars.length < 200 ? 1 : 0;
    let left = plot.x(bar[0] - 0.5);
    let width = plot.x(bar[1] + 0.5) - left;
    if (width > 60) {
      left += (width - 60) / 2;
      width = 60;
    }
    let below = 0;
    [...phaseColours.values()].forEach((colour, p) => {
      const value = bar[p + 2] / factor;
      plot.root.append(hued(svg('rect', { x: left, width: Math.max(0.5, width - gap),
        y: plot.y(below + value), height: plot.y(below) - plot.y(below + value),
        'shape-rendering': 'crispEdges' }), colour));
      below += value;
    });
  });
  plot.changes(0.5);
  plot.hover(bars.map((bar) => (bar[0] + bar[1]) / 2), (i) => [
    bars[i][0] === bars[i][1] ? `step ${stepNumber(bars[i][0])}`
      : `steps ${stepNumber(bars[i][0])} to ${stepNumber(bars[i][1])}`,
    [...phaseColours.keys()].map((phase, p) => [phase,
      `${time(bars[i][p + 2])}  ${perCent(bars[i][p + 2] / (sums[i] || 1))}`]),
  ]);
}
