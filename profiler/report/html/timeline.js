// The timeline of one step: its window of time, mouse and keys, and what the tip says.

class Timeline {
  // `run`: what has `timeline`, `clock_note` and `time_scale`.
  constructor(place, run) {
    this.run = run;
    this.place = place;
    this.canvas = element('canvas');
    this.ruler = element('canvas', 'ruler screen');  // in sight while the page scrolls the rows
    place.replaceChildren(this.ruler, this.canvas);
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
    this.layout = new TimelineLayout(this.run, step);
    this.reset();
  }

  // Options of TimelineLayout.
  layOut(options) {
    this.layout = new TimelineLayout(this.run, this.step, options);
    this.draw();
  }

  // The window of time ----------------------------------------------------------------------------

  get width() {
    return this.place.clientWidth || 1180;
  }

  ts(x) {
    return this.begin + (x - labelWidth) / (this.width - labelWidth) * (this.end - this.begin);
  }

  reset() {
    // A span that begins before the step or ends after it is shown in full, up to a tenth.
    const dur = this.step.dur || 1;
    let low = 0;
    let high = dur;
    for (const span of this.layout.spans) {
      low = Math.min(low, span.ts);
      high = Math.max(high, span.ts + span.dur);
    }
    this.setWindow(Math.max(low, -dur * 0.1), Math.min(high, dur * 1.1));
  }

  // By which the window is kept near the step.
  get longest() {
    return this.step.dur || 1;
  }

  setWindow(begin, end) {
    const dur = this.longest;
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

  // Mouse and keys --------------------------------------------------------------------------------

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

  // The items under the pointer -------------------------------------------------------------------

  hover(event, x, y) {
    const isIn = (row) => row !== null && y >= row.y && y < row.y + row.height;
    if (x < labelWidth) {
      hideTip();
    } else if (isIn(this.layout.pathRow)) {
      this.showPathTip(event, this.ts(x));
    } else {
      const counterRow = this.layout.rows.find((row) => row.counter && isIn(row));
      if (counterRow !== undefined) this.showCounterTip(event, counterRow.counter, this.ts(x));
      else this.showSpanTip(event, x, y);
    }
  }

  showPathTip(event, ts) {
    const piece = this.step.path.find((p) => ts >= p[0] && ts < p[0] + p[1]);
    if (piece === undefined) hideTip();
    else showTip(event, piece[2], [['time', time(piece[1])], ['begins at', time(piece[0])]]);
  }

  showCounterTip(event, counter, ts) {
    this.mark(null);
    const sample = counter.samples.findLast((s) => s[0] <= ts);
    if (sample === undefined || sample[1] === null) hideTip();
    else showTip(event, counter.name, [['value', counterValue(counter.name, sample[1])]]);
  }

  showSpanTip(event, x, y) {
    const slack = 1.5 / (this.width - labelWidth) * (this.end - this.begin);
    const span = this.layout.spanAt(this.ts(x), y, slack);
    if (span === null) hideTip();
    else showTip(event, this.nameOf(span), this.factsOf(span));
    this.mark(span);
  }

  factsOf(span) {
    const pairs = [['time', time(span.dur)],
      ['begins at', span.ts < 0 ? `\u2212${time(-span.ts)}` : time(span.ts)]];
    if (span.bytes > 0) {
      pairs.push(['bytes', bytes(span.bytes)]);
      if (span.padding > 0) pairs.push(['and padding', bytes(span.padding)]);
      if (span.dur > 0) {
        const own = (span.bytes + span.padding) * 1e9 / span.dur;
        const { clock_note, time_scale } = this.run;
        pairs.push([clock_note ? `bandwidth, clock \u00d7${time_scale}` : 'bandwidth',
          span.track.limit > 0 ? `${rate(own)} of ${rate(span.track.limit)}` : rate(own)]);
      }
    }
    pairs.push(['waited before', time(span.waited)]);
    if (span.subgroup >= 0) pairs.push(['subgroup', grouped(span.subgroup)]);
    if (span.layer >= 0) pairs.push(['layer', grouped(span.layer)]);
    if (span.step >= 0 && span.step !== this.step.step) {
      pairs.push(['belongs to step', stepNumber(span.step)]);
    }
    const cause = this.layout.causeOf(span);
    if (cause !== null) pairs.push(['set off by', this.nameOf(cause)]);
    return pairs;
  }

  nameOf(span) {
    const { track, name } = span;
    const where = track.name === '' ? track.group : `${track.group} ${track.name}`;
    const number = span.subgroup >= 0 ? ` ${span.subgroup}`
      : span.layer >= 0 ? ` ${span.layer}` : '';
    return (where.endsWith(name) ? where : `${name}, ${where}`) + number;
  }

  mark(span) {
    if (span === this.marked) return;
    this.marked = span;
    this.draw();
  }

  // Empties it, too.
  size(canvas, height) {
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    canvas.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  draw() {
    const { width, begin, end } = this;
    const view = { begin, end, width };
    this.size(this.canvas, this.layout.height);
    new TimelinePainter(this.context, this.layout, view).draw(this.marked);
    this.size(this.ruler, axisHeight);
    new TimelinePainter(this.ruler.getContext('2d'), this.layout, view).drawAxis();
    // For whoever looks at the page from outside, such as its test.
    this.place.dataset.window = `${Math.round(begin)} ${Math.round(end)}`;
  }
}

// With a button for each step that the page has; null: there is none, and why is said.
function drawTimeline() {
  const { steps, why_empty } = data.timeline;
  const place = byId('timeline-place');
  if (why_empty) {
    byId('timeline-tools').hidden = true;
    document.querySelector('#timeline .screen').hidden = true;
    sayEmpty(place, why_empty);
    return null;
  }
  const timeline = new Timeline(place, data);
  const note = element('span', 'unit');
  const buttons = steps.map((step) => {
    const button = element('button', '',
      `Step ${stepNumber(step.step)}: ${step.why}, ${time(step.dur)}`);
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
    timeline.show(step);
    drawExplanation(byId('timeline-explanation'), data.timeline.explanations[steps.indexOf(step)]);
    const used = new Set(timeline.layout.spans.map((span) => span.name));
    legend(byId('timeline-legend'), [...stageColours].filter(([name]) => used.has(name)));
    if (step.spans.length === 0) {
      note.textContent = 'No operation of this step is in the record.';
    }
  }
  byId('timeline-tools').append(...buttons, note);
  if (data.timeline.left_out_steps > 0) {
    const leftOut = grouped(data.timeline.left_out_steps);
    place.after(element('p', 'empty', `Operations of the first ${leftOut} ` +
      'steps are not in the record.'));
  }
  const median = Math.max(0, steps.findIndex((step) => step.why.includes('median')));
  choose(steps[median], buttons[median]);
  // On paper a row is a line or two high, and counters take the room of none.
  addEventListener('beforeprint', () => timeline.layOut({ linesMax: 2, hasCounters: false }));
  addEventListener('afterprint', () => timeline.layOut());
  return timeline;
}
