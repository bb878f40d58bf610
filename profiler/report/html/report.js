'use strict';
// Draws the data of this file's element `data`. All text of the run goes through textContent or a
// canvas: none of it is ever read as HTML.

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

const stageColours = new Map(Object.entries(data.stage_colours));
const causeColours = {
  'compute': '#4e79a7', 'host link': '#59a5d8', 'read': '#4fb286', 'write': '#e07a5f',
  'update engine': '#f2a65a', 'compression': '#b07aa1', 'processor': '#c47fb0',
  'buffers': 'waiting', 'commit': '#9aa5b1', 'recorder': '#b9a77c', 'other': '#7d8590',
};
const phaseColours = { forward: '#4e79a7', backward: '#7a5ea8', update: '#f2a65a' };

// Figures ------------------------------------------------------------------------------------------

const thin = '\u2009';  // a thin space groups thousands and stands before a unit

function grouped(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+(?!\d))/g, thin);
}

function threeDigits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

function timeUnit(ns) {
  if (ns >= 1e9) return { unit: 's', factor: 1e9 };
  if (ns >= 1e6) return { unit: 'ms', factor: 1e6 };
  if (ns >= 1e3) return { unit: 'us', factor: 1e3 };
  return { unit: 'ns', factor: 1 };
}

function time(ns) {
  if (ns >= 60e9) {
    const seconds = Math.round(ns / 1e9);
    return `${Math.floor(seconds / 60)}${thin}min ${String(seconds % 60).padStart(2, '0')}${thin}s`;
  }
  const { unit, factor } = timeUnit(ns);
  return `${unit === 'ns' ? Math.round(ns) : threeDigits(ns / factor)}${thin}${unit}`;
}

function scaled(value, unit) {
  const prefixes = ['', 'k', 'M', 'G', 'T', 'P'];
  let power = 0;
  while (Math.abs(value) >= 1000 && power < prefixes.length - 1) {
    value /= 1000;
    power += 1;
  }
  const text = power === 0 ? String(Math.round(value)) : threeDigits(value);
  return `${text}${thin}${prefixes[power]}${unit}`;
}

const bytes = (count) => scaled(count, 'B');
const rate = (perSecond) => scaled(perSecond, 'B/s');
const perCent = (share) => `${(share * 100).toFixed(1)}${thin}%`;
const stepNumber = (id) => grouped(id + 1);

// Whole per cent that add to 100: the largest remainders are rounded up.
function wholePerCents(shares) {
  const whole = shares.map((share) => Math.floor(share * 100));
  const sum = shares.reduce((a, b) => a + b, 0);
  let left = Math.round(sum * 100) - whole.reduce((a, b) => a + b, 0);
  const order = shares.map((share, i) => [share * 100 - whole[i], i]).sort((a, b) => b[0] - a[0]);
  for (const [, i] of order) {
    if (left <= 0) break;
    whole[i] += 1;
    left -= 1;
  }
  return whole;
}

// Elements -----------------------------------------------------------------------------------------

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function svg(tag, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (of) => (of === 'waiting' ? style('--waiting') : of);

function isDark(hex) {
  const [red, green, blue] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return 0.3 * red + 0.59 * green + 0.11 * blue < 125;
}

function sayEmpty(place, why) {
  place.replaceChildren(element('p', 'empty', why));
}

function dot(of) {
  const made = element('i', 'dot');
  made.style.background = of === 'waiting' ? 'var(--waiting)' : of;
  return made;
}

function legend(place, entries) {
  place.replaceChildren(...entries.map(([name, of]) => {
    const entry = element('span');
    entry.append(dot(of), name);
    return entry;
  }));
}

function table(columns, rows) {
  const made = element('table');
  const head = element('tr');
  for (const column of columns) head.append(element('th', column.num ? 'num' : '', column.title));
  made.append(element('thead'));
  made.firstChild.append(head);
  const body = element('tbody');
  for (const row of rows) {
    const line = element('tr');
    columns.forEach((column, i) => {
      const cell = element('td', column.num ? 'num' : '');
      cell.append(row[i]);
      line.append(cell);
    });
    body.append(line);
  }
  made.append(body);
  return made;
}

function pairTable(pairs) {
  const made = element('table', 'pairs');
  for (const [key, value] of pairs) {
    const row = element('tr');
    row.append(element('td', '', key), element('td', '', value));
    made.append(row);
  }
  return made;
}

function showTip(event, head, pairs) {
  const tip = byId('tip');
  tip.replaceChildren(element('div', 'head', head));
  for (const [key, value] of pairs) {
    const row = element('div', 'pair');
    row.append(element('span', '', key), element('span', 'num', value));
    tip.append(row);
  }
  tip.hidden = false;
  const room = 14;
  const left = event.clientX + room + tip.offsetWidth > innerWidth
    ? event.clientX - room - tip.offsetWidth : event.clientX + room;
  const top = event.clientY + room + tip.offsetHeight > innerHeight
    ? event.clientY - room - tip.offsetHeight : event.clientY + room;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function hideTip() {
  byId('tip').hidden = true;
}

// Head, losses, verdict ----------------------------------------------------------------------------

function drawHead() {
  byId('name').textContent = data.name;
  byId('mode').textContent = data.mode;
  byId('mode').classList.toggle('stand-in', data.is_stand_in);
}

function drawLosses() {
  if (data.losses.length === 0) return;
  const place = byId('losses');
  place.hidden = false;
  place.append(element('h2', '', 'Not all of the run is in the record'));
  for (const loss of data.losses) {
    const line = element('p');
    line.append(element('b', '', `${loss.name}: ${grouped(loss.value)}. `), loss.description);
    place.append(line);
  }
}

// What is emulated or simulated is not called measured.
function measured() {
  if (data.is_simulated) return 'Simulated';
  return data.clock === 'emulated' ? 'Measured by the emulated clock' : 'Measured';
}

function drawVerdict() {
  const verdict = data.verdict;
  if (verdict.why_empty) {
    sayEmpty(byId('verdict-words'), verdict.why_empty);
    return;
  }
  const causes = verdict.causes;
  const parts = wholePerCents(causes.map((cause) => cause.share));
  byId('verdict-title').textContent = `Why a step takes ${time(verdict.dur)}`;
  const named = causes.map((cause, i) => [cause, parts[i]]).filter(([, part]) => part > 0);
  const words = named.slice(0, 3).map(([cause, part], i) => i === 0
    ? `${part}${thin}% of it is ${cause.phrase}` : `${part}${thin}% ${cause.phrase}`);
  const steps = verdict.step_count === 1 ? `of step ${stepNumber(verdict.first_step)}`
    : `mean of ${verdict.step_count} steps from ${stepNumber(verdict.first_step)} to ` +
      `${stepNumber(verdict.last_step)}`;
  byId('verdict-words').textContent =
    `${words.join(', ')}${named.length > 3 ? '; the rest is below' : ''}. ${measured()} along the ` +
    `path of operations that waited for one another, ${steps}.`;
  for (const finding of verdict.findings) {
    byId('verdict-findings').append(element('li', finding.is_warning ? 'warning' : '', finding.text));
  }
  const largest = causes[0].share;
  causes.forEach((cause, i) => {
    const of = causeColours[cause.cause] || '#7d8590';
    const piece = element('div');
    piece.style.width = `${cause.share * 100}%`;
    piece.style.background = of === 'waiting' ? 'var(--waiting)' : of;
    piece.title = `${cause.cause} ${parts[i]} %`;
    byId('verdict-strip').append(piece);
    const row = element('div', 'bar-row');
    const track = element('div', 'track');
    const fill = element('div', 'fill');
    fill.style.width = `${cause.share / largest * 100}%`;
    fill.style.background = piece.style.background;
    track.append(fill);
    const label = element('span', '', cause.cause);
    label.title = cause.phrase;
    row.append(dot(of), label, track,
      element('span', 'num', parts[i] === 0 ? `<1${thin}%` : `${parts[i]}${thin}%`),
      element('span', 'num', time(cause.ns)));
    byId('verdict-bars').append(row);
  });
}

function drawNext() {
  const next = data.next;
  if (next === undefined) return;
  byId('next').hidden = false;
  const list = byId('next-list');
  if (next.unavailable) {
    list.append(element('p', 'empty', `Nothing is predicted: ${next.unavailable}`));
    return;
  }
  for (const group of next.groups) {
    if (group.heading) list.append(element('h4', '', group.heading));
    for (const change of group.rows) {
      const row = element('div', 'next-row');
      row.append(element('b', '', change.words),
        element('span', 'num', `\u2212${Math.round(-change.change * 100)}${thin}% of a step`),
        element('span', 'num', `to ${time(change.ns)}`), element('span', 'why', change.why));
      list.append(row);
    }
  }
  if (next.none) list.prepend(element('p', 'empty', next.none));
  byId('next-note').textContent = next.note;
}

// Curves -------------------------------------------------------------------------------------------

let plotWidth = 1180;  // of the window, so that text keeps its size
const margin = { left: 64, right: 12, top: 20, bottom: 22 };

// Round values from low to high, about so many.
function ticks(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const width = [1, 2, 2.5, 5, 10].map((m) => m * power).find((w) => w >= raw * (1 - 1e-9));
  const made = [];
  for (let tick = Math.ceil(low / width - 1e-9) * width; tick <= high + width * 1e-6; tick += width) {
    made.push(Math.abs(tick) < width * 1e-6 ? 0 : tick);
  }
  let digits = 0;
  while (digits < 9 && Math.abs(width * 10 ** digits % 1 - 0.5) < 0.5 - 1e-6) digits += 1;
  return { values: made, digits };
}

class Plot {
  constructor(place, height, steps, low, high) {
    this.place = place;
    this.height = height;
    this.firstStep = steps[0];
    this.lastStep = steps[1];
    this.low = low;
    this.high = high > low ? high : low + 1;
    this.root = svg('svg', { viewBox: `0 0 ${plotWidth} ${height}`, role: 'img' });
    place.replaceChildren(this.root);
    this.axes();
  }

  x(step) {
    const width = plotWidth - margin.left - margin.right;
    if (this.lastStep === this.firstStep) return margin.left + width / 2;
    return margin.left + (step - this.firstStep) / (this.lastStep - this.firstStep) * width;
  }

  y(value) {
    const height = this.height - margin.top - margin.bottom;
    return margin.top + (1 - (value - this.low) / (this.high - this.low)) * height;
  }

  axes() {
    const { values, digits } = ticks(this.low, this.high, 4);
    for (const value of values) {
      const y = this.y(value);
      this.root.append(
        svg('line', { class: 'grid', x1: margin.left, x2: plotWidth - margin.right, y1: y, y2: y }),
        svg('text', { x: margin.left - 8, y: y + 4, 'text-anchor': 'end' }, value.toFixed(digits)));
    }
    const numbers = ticks(this.firstStep + 1, this.lastStep + 1, plotWidth / 115).values
      .filter((number) => Math.abs(number - Math.round(number)) < 1e-6).map(Math.round);
    for (const number of numbers.length > 0 ? numbers : [Math.ceil(this.firstStep + 1)]) {
      this.root.append(svg('text', { x: this.x(number - 1), y: this.height - 6,
        'text-anchor': 'middle' }, grouped(number)));
    }
  }

  // `points` of [step, value]; null is a gap.
  curve(points) {
    let path = '';
    let isOn = false;
    for (const [step, value] of points) {
      if (value === null) {
        isOn = false;
        continue;
      }
      path += `${isOn ? 'L' : 'M'}${this.x(step).toFixed(1)} ${this.y(value).toFixed(1)}`;
      isOn = true;
    }
    this.root.append(svg('path', { class: 'curve', d: path }));
    if (points.length > 120) return;
    for (const [step, value] of points) {
      if (value === null) continue;
      this.root.append(svg('circle', { class: 'point', cx: this.x(step), cy: this.y(value), r: 2.5 }));
    }
  }

  // Changes of knobs, `before` so many steps; texts that would overlap go without.
  changes(before = 0) {
    let freeFrom = 0;
    for (const [step, text] of data.changes) {
      if (step < this.firstStep || step > this.lastStep) continue;
      const x = this.x(step - before);
      this.root.append(svg('line', { class: 'change', x1: x, x2: x, y1: margin.top - 4,
        y2: this.height - margin.bottom }));
      const width = text.length * 6.2;
      const isLeft = x + width > plotWidth;
      const begin = isLeft ? x - width : x;
      if (begin < freeFrom) continue;
      this.root.append(svg('text', { class: 'change-text', x: isLeft ? x - 5 : x + 5,
        y: margin.top - 6, 'text-anchor': isLeft ? 'end' : 'start' }, text));
      freeFrom = begin + width + 16;
    }
  }

  skipped(marks, valueOf) {
    for (const mark of marks) {
      const x = this.x(mark[0]);
      const y = this.y(valueOf(mark));
      this.root.append(svg('path', { class: 'skipped',
        d: `M${x - 4} ${y - 4}L${x + 4} ${y + 4}M${x - 4} ${y + 4}L${x + 4} ${y - 4}` }));
    }
  }

  // `describe(index)` is what the tip says of the nearest of `steps`.
  hover(steps, describe) {
    const cursor = svg('line', { class: 'cursor', y1: margin.top, y2: this.height - margin.bottom });
    this.root.append(cursor);
    this.root.addEventListener('mousemove', (event) => {
      const box = this.root.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * plotWidth;
      let nearest = 0;
      steps.forEach((step, i) => {
        if (Math.abs(this.x(step) - x) < Math.abs(this.x(steps[nearest]) - x)) nearest = i;
      });
      const at = this.x(steps[nearest]);
      cursor.setAttribute('x1', at);
      cursor.setAttribute('x2', at);
      cursor.style.visibility = 'visible';
      showTip(event, ...describe(nearest));
    });
    this.root.addEventListener('mouseleave', () => {
      cursor.style.visibility = 'hidden';
      hideTip();
    });
  }
}

function drawPlots() {
  plotWidth = Math.max(320, byId('time-plot').clientWidth || 1180);
  drawCurves();
  drawPhases();
}

function drawCurves() {
  const { points, skipped } = data.curves;
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
    ? `; ${grouped(points.length)} of ${grouped(data.step_count)} steps are drawn, extremes among them`
    : '';
  const crosses = data.curves.skipped_count > 0
    ? `; crosses: ${grouped(data.curves.skipped_count)} skipped` : '';
  byId('time-unit').textContent = `${unit}${thinned}${crosses}`;
  const describe = (i) => [`step ${stepNumber(steps[i])}`, [
    ['time', time(points[i][1])],
    ['loss', points[i][2] === null ? 'none' : points[i][2].toFixed(4)],
    ...(isSkipped.has(steps[i]) ? [['skipped', 'gradients overflowed']] : []),
  ]];
  const highest = Math.max(...points.map((point) => point[1])) / factor;
  const times = new Plot(byId('time-plot'), 190, ends, 0, highest * 1.05);
  times.curve(points.map((point) => [point[0], point[1] / factor]));
  times.changes();
  times.skipped(skipped, (mark) => mark[1] / factor);
  times.hover(steps, describe);

  const losses = points.map((point) => point[2]).filter((loss) => loss !== null);
  if (losses.length === 0) {
    sayEmpty(byId('loss-plot'), data.is_simulated
      ? 'A simulated step moves no data and computes nothing, so it has no loss.'
      : 'No step has a loss that is a number.');
    return;
  }
  const low = Math.min(...losses);
  const high = Math.max(...losses);
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  const loss = new Plot(byId('loss-plot'), 190, ends, low - room, high + room);
  loss.curve(points.map((point) => [point[0], point[2]]));
  loss.changes();
  loss.hover(steps, describe);
}

function drawPhases() {
  const { bars, why_empty } = data.phases;
  if (bars.length === 0) {
    sayEmpty(byId('phase-plot'), why_empty);
    return;
  }
  legend(byId('phase-legend'), Object.entries(phaseColours));
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
    Object.keys(phaseColours).forEach((phase, p) => {
      const value = bar[p + 2] / factor;
      plot.root.append(svg('rect', { x: left, width: Math.max(0.5, width - gap),
        y: plot.y(below + value), height: plot.y(below) - plot.y(below + value),
        fill: phaseColours[phase], 'shape-rendering': 'crispEdges' }));
      below += value;
    });
  });
  plot.changes(0.5);
  plot.hover(bars.map((bar) => (bar[0] + bar[1]) / 2), (i) => [
    bars[i][0] === bars[i][1] ? `step ${stepNumber(bars[i][0])}`
      : `steps ${stepNumber(bars[i][0])} to ${stepNumber(bars[i][1])}`,
    Object.keys(phaseColours).map((phase, p) => [phase,
      `${time(bars[i][p + 2])}  ${perCent(bars[i][p + 2] / (sums[i] || 1))}`]),
  ]);
}

// Tables -------------------------------------------------------------------------------------------

function meter(share, of) {
  const made = element('div', 'meter');
  const fill = element('div');
  fill.style.width = `${Math.min(100, Math.max(0, share * 100))}%`;
  fill.style.background = of;
  made.append(fill);
  return made;
}

// A run that was never changed has nothing to set side by side.
function drawStretches() {
  if (data.stretches.length < 2) return;
  byId('stretches').hidden = false;
  byId('stretch-unit').textContent = 'medians of the steps, without the first two after a change' +
    (data.time_scale === 1 ? '' : `; times by the emulated clock, ${data.time_scale} times slower`);
  const columns = [{ title: 'steps' }, { title: 'settings' }, { title: 'a step takes', num: true },
    { title: 'host link, out of drives', num: true }, { title: 'into drives', num: true },
    { title: '' }, { title: 'speed-up', num: true }];
  const fastest = Math.max(...data.stretches.map((stretch) => stretch.speed_up));
  const each = (count) => `${threeDigits(count)}${thin}B/parameter`;
  byId('stretch-table').append(table(columns, data.stretches.map((stretch) => [
    `${stepNumber(stretch.first_step)} to ${stepNumber(stretch.last_step)}`, stretch.settings,
    time(stretch.dur), each(stretch.read_bytes), each(stretch.write_bytes),
    meter(stretch.speed_up / fastest, '#57c08a'), `${threeDigits(stretch.speed_up)}${thin}x`])));
}

function drawLinks() {
  const { rows, why_empty } = data.links;
  if (rows.length === 0) {
    sayEmpty(byId('link-table'), why_empty);
    return;
  }
  const columns = [{ title: 'link' }, { title: 'direction' }, { title: 'bytes', num: true },
    { title: 'bandwidth while it moves', num: true }, { title: 'limit', num: true },
    { title: 'busy', num: true }, { title: '' }, { title: 'of limit', num: true }];
  const draw = (some) => table(columns, some.map((row) => {
    const of = row.is_shared ? '#59a5d8' : row.direction === 'read' ? '#4fb286' : '#e07a5f';
    const ends = row.name.endsWith('.link') ? 'accelerator' : 'drives';
    return [row.name, `${row.direction === 'read' ? 'out of' : 'into'} ${ends}`,
      bytes(row.bytes), rate(row.bytes_per_s),
      row.bytes_per_s_max > 0 ? rate(row.bytes_per_s_max) : 'not stated', time(row.busy_ns),
      meter(row.share, of), element('span', row.share > 0.97 ? 'limit' : '', perCent(row.share))];
  }));
  // The fullest first: that is the one to look at. Those that devices share are always shown.
  const ordered = [...rows].sort((a, b) => b.share - a.share);
  const isShown = (row, i) => ordered.length <= 14 || i < 10 || row.is_shared;
  const shown = ordered.filter(isShown);
  const others = ordered.filter((row, i) => !isShown(row, i));
  const place = byId('link-table');
  place.replaceChildren(draw(shown));
  if (data.clock_note) {
    place.prepend(element('p', 'empty', `Times, bandwidths and limits: ${data.clock_note}.`));
  }
  if (others.length === 0) return;
  const rest = element('details');
  rest.append(element('summary', '', `${others.length} more, less full`), draw(others));
  place.append(rest);
}

function drawDevices() {
  const { rows, why_empty } = data.devices;
  if (rows.length === 0) {
    sayEmpty(byId('device-table'), why_empty);
    return;
  }
  const mean = rows.reduce((sum, row) => sum + row.busy_ns, 0) / rows.length;
  const slowest = Math.max(...rows.map((row) => row.busy_ns));
  const isNotable = (row) => rows.length > 1 && row.busy_ns === slowest &&
    mean > 0 && row.busy_ns / mean > 1.02;
  const columns = [{ title: 'device' }, { title: 'kind' }, { title: 'read', num: true },
    { title: 'written', num: true }, { title: 'update kernels', num: true },
    { title: 'busy', num: true }, { title: 'busy, to the mean', num: true }];
  byId('device-table').replaceChildren(table(columns, rows.map((row) => {
    const off = mean > 0 ? row.busy_ns / mean - 1 : 0;
    const text = rows.length < 2 ? 'one device'
      : `${off >= 0 ? '+' : '\u2212'}${perCent(Math.abs(off))}`;
    return [row.name, row.kind, bytes(row.read_bytes), bytes(row.written_bytes),
      row.update_ns > 0 ? time(row.update_ns) : 'on the host', time(row.busy_ns),
      element('span', isNotable(row) ? 'notice' : '', isNotable(row) ? `longest, ${text}` : text)];
  })));
}

// Timeline -----------------------------------------------------------------------------------------

// Positions in a span's array.
const at = { track: 0, name: 1, lane: 2, ts: 3, dur: 4, waited: 5, bytes: 6, padding: 7, subgroup: 8,
  layer: 9, step: 10, cause: 11 };  // the cause is the index of a span, if there is one
const labelWidth = 170;
const axisHeight = 26;
const lineHeight = 17;
const groupHeight = 22;
const counterHeight = 40;
const kernelColours = ['#4e79a7', '#6b8fb8', '#3d6a99', '#5a86b5'];

// What is no stage has the colour of its track: of a GPU's kernels neighbours differ a little.
function colourOf(name, track) {
  if (stageColours.has(name)) return stageColours.get(name);
  if (track.kind !== 'cuda') return '#7d8590';
  if (/^(memcpy|memset)/.test(name)) return '#59a5d8';
  if (track.group === 'synchronization' || track.group === 'CUPTI overhead') return '#7d8590';
  let sum = 0;
  for (let i = 0; i < name.length; i += 1) sum = (sum * 31 + name.charCodeAt(i)) % 9973;
  return kernelColours[sum % kernelColours.length];
}

// A counter has no unit but in its name.
function counterValue(name, value) {
  if (/byte|memory/i.test(name)) return bytes(value);
  if (/share/i.test(name)) return perCent(value);
  return Number.isInteger(value) ? grouped(value) : threeDigits(value);
}

class Timeline {
  constructor(place) {
    this.place = place;
    this.canvas = element('canvas');
    place.replaceChildren(this.canvas);
    this.context = this.canvas.getContext('2d');
    this.canvas.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    this.canvas.addEventListener('pointerdown', (event) => this.onDown(event));
    this.canvas.addEventListener('pointermove', (event) => this.onMove(event));
    this.canvas.addEventListener('pointerup', () => { this.drag = null; });
    this.canvas.addEventListener('pointerleave', () => {
      hideTip();
      this.mark(null);
    });
    this.canvas.addEventListener('dblclick', () => this.reset());
    place.addEventListener('keydown', (event) => this.onKey(event));
    addEventListener('resize', () => this.draw());
    this.drag = null;
    this.marked = null;  // the span under the pointer
  }

  show(step) {
    this.step = step;
    this.marked = null;
    this.layOut();
    this.reset();
  }

  // Rows from above: the path of the verdict, then groups with their tracks; a track has as many
  // lines as it has lanes.
  layOut() {
    const lanes = new Map();
    for (const span of this.step.spans) {
      lanes.set(span[at.track], Math.max(lanes.get(span[at.track]) || 0, span[at.lane] + 1));
    }
    const order = [...lanes.keys()].sort((a, b) => {
      const [one, other] = [data.timeline.tracks[a], data.timeline.tracks[b]];
      return one.order - other.order;
    });
    this.rows = [];
    this.topOfTrack = new Map();
    this.lineOfTrack = new Map();  // height of its lines
    let y = axisHeight;
    if (this.step.path.length > 0) {
      this.rows.push({ y, height: lineHeight, label: 'critical path', isPath: true });
      y += lineHeight + 6;
    }
    let group = null;
    for (const index of order) {
      const track = data.timeline.tracks[index];
      if (track.group !== group) {
        group = track.group;
        if (track.name !== '') {
          this.rows.push({ y, height: groupHeight, label: group, isGroup: true });
          y += groupHeight;
        } else {
          y += 4;
        }
      }
      this.topOfTrack.set(index, y);
      // Deep queues have many lanes: together no more than a few lines of text.
      const line = Math.max(2, Math.min(lineHeight, Math.floor(6 * lineHeight / lanes.get(index))));
      this.lineOfTrack.set(index, line);
      const height = Math.max(lineHeight, lanes.get(index) * line);
      this.rows.push({ y, height, label: track.name || track.group, isTop: track.name === '' });
      y += height + 3;
    }
    if (this.step.counters.length > 0) {
      this.rows.push({ y, height: groupHeight, label: 'counters', isGroup: true });
      y += groupHeight + 2;
      for (const counter of this.step.counters) {
        this.rows.push({ y, height: counterHeight, label: counter.name, counter });
        y += counterHeight + 4;
      }
    }
    this.height = y + 6;
    // Buckets would be faster for more spans than a page holds; these are scanned.
    this.spans = this.step.spans;
  }

  get width() {
    return this.place.clientWidth || 1180;
  }

  x(ts) {
    return labelWidth + (ts - this.begin) / (this.end - this.begin) * (this.width - labelWidth);
  }

  ts(x) {
    return this.begin + (x - labelWidth) / (this.width - labelWidth) * (this.end - this.begin);
  }

  reset() {
    // What began before the step or ends after it is shown as far as it reaches, up to a tenth.
    const dur = this.step.dur || 1;
    let low = 0;
    let high = dur;
    for (const span of this.spans) {
      low = Math.min(low, span[at.ts]);
      high = Math.max(high, span[at.ts] + span[at.dur]);
    }
    this.setWindow(Math.max(low, -dur * 0.1), Math.min(high, dur * 1.1));
  }

  setWindow(begin, end) {
    const dur = this.step.dur || 1;
    const width = Math.min(Math.max(end - begin, 100), dur * 3);
    const middle = (begin + end) / 2;
    this.begin = Math.min(Math.max(middle - width / 2, -dur * 1.5), dur * 2.5 - width);
    this.end = this.begin + width;
    this.draw();
  }

  zoom(factor, ts) {
    this.setWindow(ts - (ts - this.begin) * factor, ts + (this.end - ts) * factor);
  }

  pan(share) {
    const by = (this.end - this.begin) * share;
    this.setWindow(this.begin + by, this.end + by);
  }

  position(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  onWheel(event) {
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.pan(event.deltaX / this.width);
      return;
    }
    const x = Math.max(labelWidth, this.position(event).x);
    this.zoom(event.deltaY < 0 ? 1 / 1.25 : 1.25, this.ts(x));
  }

  onDown(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.place.focus({ preventScroll: true });
    this.drag = { x: this.position(event).x, begin: this.begin, end: this.end };
  }

  onMove(event) {
    const { x, y } = this.position(event);
    if (this.drag !== null) {
      const by = (this.drag.x - x) / (this.width - labelWidth) * (this.drag.end - this.drag.begin);
      this.setWindow(this.drag.begin + by, this.drag.end + by);
      hideTip();
      return;
    }
    this.hover(event, x, y);
  }

  onKey(event) {
    const middle = (this.begin + this.end) / 2;
    const actions = {
      '+': () => this.zoom(1 / 1.5, middle), '=': () => this.zoom(1 / 1.5, middle),
      '-': () => this.zoom(1.5, middle), 'ArrowUp': () => this.zoom(1 / 1.5, middle),
      'ArrowDown': () => this.zoom(1.5, middle), 'ArrowLeft': () => this.pan(-0.2),
      'ArrowRight': () => this.pan(0.2), 'Home': () => this.reset(), '0': () => this.reset(),
    };
    if (!(event.key in actions) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  spanAt(x, y) {
    const slack = 1.5 / (this.width - labelWidth) * (this.end - this.begin);
    const ts = this.ts(x);
    let best = null;
    for (const span of this.spans) {
      const line = this.lineOfTrack.get(span[at.track]);
      const top = this.topOfTrack.get(span[at.track]) + span[at.lane] * line;
      if (y < top || y >= top + line) continue;
      if (ts < span[at.ts] - slack || ts > span[at.ts] + span[at.dur] + slack) continue;
      if (best === null || span[at.dur] < best[at.dur]) best = span;
    }
    return best;
  }

  hover(event, x, y) {
    if (x < labelWidth) {
      hideTip();
      return;
    }
    const row = this.rows[0];
    if (row !== undefined && row.isPath && y >= row.y && y < row.y + row.height) {
      const ts = this.ts(x);
      const piece = this.step.path.find((p) => ts >= p[0] && ts < p[0] + p[1]);
      if (piece === undefined) hideTip();
      else showTip(event, piece[2], [['time', time(piece[1])], ['begins at', time(piece[0])]]);
      return;
    }
    const counterRow = this.rows.find((r) => r.counter && y >= r.y && y < r.y + r.height);
    if (counterRow !== undefined) {
      this.mark(null);
      const ts = this.ts(x);
      const sample = counterRow.counter.samples.findLast((s) => s[0] <= ts);
      if (sample === undefined || sample[1] === null) hideTip();
      else showTip(event, counterRow.counter.name, [['value', counterValue(counterRow.counter.name, sample[1])]]);
      return;
    }
    const span = this.spanAt(x, y);
    if (span === null) {
      hideTip();
      this.mark(null);
      return;
    }
    const track = data.timeline.tracks[span[at.track]];
    const pairs = [['time', time(span[at.dur])],
      ['begins at', span[at.ts] < 0 ? `\u2212${time(-span[at.ts])}` : time(span[at.ts])]];
    if (span[at.bytes] > 0) {
      pairs.push(['bytes', bytes(span[at.bytes])]);
      if (span[at.padding] > 0) pairs.push(['and padding', bytes(span[at.padding])]);
      if (span[at.dur] > 0) {
        const own = (span[at.bytes] + span[at.padding]) * 1e9 / span[at.dur];
        pairs.push([data.clock_note ? `bandwidth, clock \u00d7${data.time_scale}` : 'bandwidth',
          track.limit > 0 ? `${rate(own)} of ${rate(track.limit)}` : rate(own)]);
      }
    }
    pairs.push(['waited before', time(span[at.waited])]);
    if (span[at.subgroup] >= 0) pairs.push(['subgroup', grouped(span[at.subgroup])]);
    if (span[at.layer] >= 0) pairs.push(['layer', grouped(span[at.layer])]);
    if (span[at.step] >= 0 && span[at.step] !== this.step.step) {
      pairs.push(['belongs to step', stepNumber(span[at.step])]);
    }
    const cause = this.causeOf(span);
    if (cause !== null) pairs.push(['set off by', this.nameOf(cause)]);
    showTip(event, this.nameOf(span), pairs);
    this.mark(span);
  }

  causeOf(span) {
    return span[at.cause] === undefined ? null : this.spans[span[at.cause]];
  }

  nameOf(span) {
    const track = data.timeline.tracks[span[at.track]];
    const name = data.timeline.names[span[at.name]];
    const where = track.name === '' ? track.group : `${track.group} ${track.name}`;
    const number = span[at.subgroup] >= 0 ? ` ${span[at.subgroup]}`
      : span[at.layer] >= 0 ? ` ${span[at.layer]}` : '';
    return (where.endsWith(name) ? where : `${name}, ${where}`) + number;
  }

  // An outline around a span, and lines back through what set it off.
  mark(span) {
    if (span === this.marked) return;
    this.marked = span;
    this.draw();
  }

  drawMark(context) {
    if (!this.marked) return;
    context.strokeStyle = style('--text');
    context.lineWidth = 1.5;
    const middle = (of) => this.topOfTrack.get(of[at.track]) +
      (of[at.lane] + 0.5) * this.lineOfTrack.get(of[at.track]);
    const x = this.x(this.marked[at.ts]);
    const line = this.lineOfTrack.get(this.marked[at.track]);
    context.strokeRect(x, middle(this.marked) - line / 2 + 1,
      Math.max(1, this.x(this.marked[at.ts] + this.marked[at.dur]) - x), Math.max(1, line - 3));
    context.setLineDash([4, 3]);
    context.lineWidth = 1;
    let effect = this.marked;
    for (let i = 0; i < 12; i += 1) {  // further back it is a tangle
      const cause = this.causeOf(effect);
      if (cause === null) break;
      context.beginPath();
      context.moveTo(this.x(cause[at.ts] + cause[at.dur]), middle(cause));
      context.lineTo(this.x(effect[at.ts]), middle(effect));
      context.stroke();
      effect = cause;
    }
    context.setLineDash([]);
  }

  draw() {
    const ratio = devicePixelRatio || 1;
    const width = this.width;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = `${this.height}px`;
    const context = this.context;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, this.height);
    this.drawAxis(context, width);
    context.save();
    context.beginPath();
    context.rect(labelWidth, axisHeight, width - labelWidth, this.height - axisHeight);
    context.clip();
    this.drawPath(context);
    this.drawSpans(context);
    this.drawCounters(context);
    this.drawMark(context);
    context.restore();
    this.drawLabels(context, width);
    // For whoever looks at the page from outside, such as its test.
    this.place.dataset.window = `${Math.round(this.begin)} ${Math.round(this.end)}`;
  }

  drawAxis(context, width) {
    const { unit, factor } = timeUnit(Math.max(this.end - this.begin, 1));
    const { values, digits } = ticks(this.begin / factor, this.end / factor, Math.max(3, width / 150));
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.textAlign = 'center';
    for (const value of values) {
      const x = this.x(value * factor);
      if (x < labelWidth) continue;
      context.fillStyle = style('--line');
      context.fillRect(x, axisHeight - 6, 1, this.height - axisHeight);
      context.fillStyle = style('--dim');
      if (x > labelWidth + 20 && x < width - 24) {
        context.fillText(`${value.toFixed(digits)}${thin}${unit}`, x, axisHeight / 2 - 3);
      }
    }
    for (const [ts, isEnd] of [[0, false], [this.step.dur, true]]) {  // the step's own ends
      const x = this.x(ts);
      if (x < labelWidth || x > width) continue;
      context.fillStyle = style('--text');
      context.fillRect(isEnd ? x - 1 : x, axisHeight - 8, 1, this.height - axisHeight);
    }
  }

  drawPath(context) {
    const row = this.rows[0];
    if (row === undefined || !row.isPath) return;
    for (const [ts, dur, cause] of this.step.path) {
      const x = this.x(ts);
      const width = Math.max(0.5, this.x(ts + dur) - x);
      context.fillStyle = colour(causeColours[cause] || '#7d8590');
      context.fillRect(x, row.y + 1, width, row.height - 2);
      this.text(context, cause, x, width, row.y + row.height / 2, causeColours[cause]);
    }
  }

  drawSpans(context) {
    for (const span of this.spans) {
      if (span[at.ts] > this.end || span[at.ts] + span[at.dur] < this.begin) continue;
      const name = data.timeline.names[span[at.name]];
      const x = this.x(span[at.ts]);
      const own = this.x(span[at.ts] + span[at.dur]) - x;
      const line = this.lineOfTrack.get(span[at.track]);
      const y = this.topOfTrack.get(span[at.track]) + span[at.lane] * line;
      context.fillStyle = colourOf(name, data.timeline.tracks[span[at.track]]);
      // A gap of half a pixel tells neighbours apart.
      context.fillRect(x, y + 1, Math.max(0.6, own > 3 ? own - 0.6 : own),
        line > 8 ? line - 3 : line > 3 ? line - 1 : line);
      if (own > 30 && line > 11) {
        const about = span[at.layer] >= 0 ? ` ${span[at.layer]}`
          : span[at.subgroup] >= 0 ? ` ${span[at.subgroup]}` : '';
        this.text(context, name + about, x, own, y + line / 2 - 0.5,
          colourOf(name, data.timeline.tracks[span[at.track]]));
      }
    }
  }

  // Each from zero, or its lowest, to its highest in the step; a value holds until the next.
  drawCounters(context) {
    for (const row of this.rows) {
      if (!row.counter) continue;
      const { samples } = row.counter;
      const values = samples.map((s) => s[1]).filter((value) => value !== null);
      if (values.length === 0) continue;
      const low = Math.min(0, ...values);
      const high = Math.max(...values);
      const y = (value) => row.y + row.height - 1 - (value - low) / (high - low || 1) * (row.height - 4);
      context.fillStyle = style('--line');
      context.fillRect(labelWidth, row.y + row.height - 1, this.width - labelWidth, 1);
      samples.forEach(([ts, value], i) => {
        const end = i + 1 < samples.length ? samples[i + 1][0] : this.step.dur;
        if (value === null || end < this.begin || ts > this.end) return;
        const x = Math.max(labelWidth, this.x(ts));
        const width = Math.max(0.5, this.x(end) - x);
        context.fillStyle = style('--accent');
        context.globalAlpha = 0.35;
        context.fillRect(x, y(value), width, row.y + row.height - 1 - y(value));
        context.globalAlpha = 1;
        context.fillRect(x, y(value) - 1, width, 1.5);
      });
    }
  }

  text(context, text, x, width, y, on) {
    const begin = Math.max(x, labelWidth);
    const room = Math.min(x + width, this.width) - begin;
    context.font = '10px system-ui, sans-serif';
    if (room < 24 || context.measureText(text).width > room - 6) return;
    context.fillStyle = isDark(colour(on || '#7d8590')) ? '#ffffff' : '#10131a';
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    context.fillText(text, begin + 3, y + 0.5);
  }

  drawCounterScale(context, row) {
    const values = row.counter.samples.map((s) => s[1]).filter((value) => value !== null);
    context.font = '11px system-ui, sans-serif';
    context.fillStyle = style('--dim');
    context.fillText(values.length === 0 ? 'no value in this step'
      : `to ${counterValue(row.counter.name, Math.max(...values))}`, 12, row.y + counterHeight - 10);
  }

  drawLabels(context, width) {
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    for (const row of this.rows) {
      const isStrong = row.isGroup || row.isPath || row.isTop;
      context.font = `${isStrong ? '600 ' : ''}12px system-ui, sans-serif`;
      context.fillStyle = style(isStrong ? '--text' : '--dim');
      let label = row.label;
      while (label.length > 4 && context.measureText(label).width > labelWidth - 22) {
        label = `${label.slice(0, -2)}\u2026`;
      }
      const height = row.isGroup ? groupHeight : lineHeight;
      context.fillText(label, isStrong ? 0 : 12, row.y + height / 2 + (row.isGroup ? 2 : 0));
      if (row.counter) this.drawCounterScale(context, row);
      context.fillStyle = style('--line');
      if (row.isGroup) context.fillRect(0, row.y, width, 1);
    }
  }
}

function drawTimeline() {
  const { steps, why_empty } = data.timeline;
  const place = byId('timeline-place');
  if (why_empty) {
    byId('timeline-tools').hidden = true;
    document.querySelector('#timeline .screen').hidden = true;
    sayEmpty(place, why_empty);
    return null;
  }
  const timeline = new Timeline(place);
  const note = element('span', 'unit');
  const buttons = steps.map((step) => {
    const button = element('button', '', `Step ${stepNumber(step.step)}: ${step.why}, ${time(step.dur)}`);
    button.type = 'button';
    button.addEventListener('click', () => choose(step, button));
    return button;
  });
  function choose(step, chosen) {
    for (const button of buttons) button.setAttribute('aria-pressed', String(button === chosen));
    note.textContent = step.spans.length < step.span_count
      ? `the ${grouped(step.spans.length)} longest of ${grouped(step.span_count)} operations` : '';
    note.className = note.textContent === '' ? 'unit' : 'notice';
    place.dataset.step = step.step;
    byId('timeline-step').textContent =
      `of step ${stepNumber(step.step)}, ${time(step.dur)}: ${step.why}`;
    const used = new Set(step.spans.map((span) => data.timeline.names[span[at.name]]));
    legend(byId('timeline-legend'),
      [...stageColours].filter(([name]) => used.has(name)));
    if (step.spans.length === 0) {
      note.textContent = 'No operation of this step is in the record.';
    }
    timeline.show(step);
  }
  byId('timeline-tools').append(...buttons, note);
  if (data.timeline.left_out_steps > 0) {
    place.after(element('p', 'empty', `Operations of the first ${grouped(data.timeline.left_out_steps)} ` +
      'steps are not in the record.'));
  }
  const median = Math.max(0, steps.findIndex((step) => step.why.includes('median')));
  choose(steps[median], buttons[median]);
  return timeline;
}

// Facts, theme -------------------------------------------------------------------------------------

function drawFacts() {
  const facts = data.facts.map(([key, value]) =>
    [key, key === 'Parameters' && /^\d+$/.test(value) ? grouped(Number(value)) : value]);
  facts.splice(1, 0, ['Steps recorded', grouped(data.step_count)]);
  if (data.changes.length > 0) {
    facts.push(['Changed while it ran', data.changes
      .map(([step, text, who]) => `from step ${stepNumber(step)}: ${text} (asked by: ${who})`).join('\n')]);
  }
  byId('fact-table').replaceChildren(pairTable(facts));
  byId('setting-table').replaceChildren(data.settings.length > 0 ? pairTable(data.settings)
    : element('p', 'empty', 'The database holds no settings.'));
}

function setTheme(theme, timeline) {
  document.documentElement.dataset.theme = theme;
  if (timeline) timeline.draw();
}

drawHead();
drawLosses();
const preferred = matchMedia('(prefers-color-scheme: dark)');
// A theme in the address (#dark) is for whoever links to the page or prints it.
setTheme(/^#(dark|light)$/.test(location.hash) ? location.hash.slice(1)
  : preferred.matches ? 'dark' : 'light', null);
drawVerdict();
drawStretches();
drawNext();
drawPlots();
addEventListener('resize', drawPlots);
drawLinks();
drawDevices();
const timeline = drawTimeline();
drawFacts();
preferred.addEventListener('change', (event) => setTheme(event.matches ? 'dark' : 'light', timeline));
byId('theme').addEventListener('click', () =>
  setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark', timeline));
// The canvas holds pixels, so it is drawn anew in the colours of paper.
let themeOfScreen = null;
addEventListener('beforeprint', () => {
  themeOfScreen = document.documentElement.dataset.theme;
  for (const details of document.querySelectorAll('#facts details')) details.open = true;
  setTheme('light', timeline);
});
addEventListener('afterprint', () => {
  if (themeOfScreen !== null) setTheme(themeOfScreen, timeline);
  themeOfScreen = null;
});
document.documentElement.dataset.drawn = 'yes';
