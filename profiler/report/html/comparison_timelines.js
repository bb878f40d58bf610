// A step of each run, one above the other: both begin at the left, on one scale, and move together.
// So that both can be seen at once, a track is a line high, and one device stands for all until the
// button asks for them.

let hasAllDevices = false;

const deviceNames = (run) => [...new Set([...run.timeline.tracks]
  .filter((track) => track.kind === 'device').sort((a, b) => a.order - b.order)
  .map((track) => track.group))];

// The same device in both, where both have it.
function shownDevice(run) {
  const names = deviceNames(run);
  const first = deviceNames(data.a)[0];
  return names.includes(first) ? first : names[0];
}

function layoutOf(run, step) {
  const device = shownDevice(run);
  return new TimelineLayout(run, step, { linesMax: 1,
    isShown: (track) => hasAllDevices || track.kind !== 'device' || track.group === device });
}

class PairedTimeline extends Timeline {
  // Both are shown before either is reset: a reset looks at both.
  static show(a, b, stepA, stepB) {
    for (const [timeline, other, step] of [[a, b, stepA], [b, a, stepB]]) {
      timeline.other = other;
      timeline.step = step;
      timeline.marked = null;
      timeline.layout = layoutOf(timeline.run, step);
    }
    a.reset();
  }

  // The time that either step has, so that the longer one fits.
  reset() {
    let low = 0;
    let high = 0;
    for (const { step, layout } of [this, this.other]) {
      const dur = step.dur || 1;
      high = Math.max(high, dur);
      for (const span of layout.spans) {
        low = Math.min(low, Math.max(span.ts, -dur * 0.1));
        high = Math.max(high, Math.min(span.ts + span.dur, dur * 1.1));
      }
    }
    this.setWindow(low, high);
  }

  // The same for both, whichever is moved.
  get longest() {
    return Math.max(this.step.dur, this.other.step.dur) || 1;
  }

  setWindow(begin, end) {
    super.setWindow(begin, end);
    this.other.begin = this.begin;
    this.other.end = this.end;
    this.other.draw();
  }
}

function stepTitle(which, step) {
  const title = byId(`timeline-title-${which}`);
  title.replaceChildren(letter(which), `step ${stepNumber(step.step)}, ${time(step.dur)} `);
  if (step.spans.length < step.span_count) {
    title.append(element('span', 'notice', `the ${grouped(step.spans.length)} longest of ` +
      `${grouped(step.span_count)} operations`));
  }
  if (step.spans.length === 0) {
    title.append(element('span', 'unit', 'no operation of this step is in the record'));
  }
}

function pairText(a, b) {
  if (a.step === b.step) return `Step ${stepNumber(a.step)}: ${a.why}`;
  return `A step ${stepNumber(a.step)}, B step ${stepNumber(b.step)}: ${a.why}`;
}

// None where there is one device or none.
function deviceSwitch(redraw) {
  const count = Math.max(deviceNames(data.a).length, deviceNames(data.b).length);
  if (count < 2) return [];
  const button = element('button', '', `All ${grouped(count)} devices`);
  button.type = 'button';
  button.setAttribute('aria-pressed', 'false');
  button.addEventListener('click', () => {
    hasAllDevices = !hasAllDevices;
    button.setAttribute('aria-pressed', String(hasAllDevices));
    redraw();
  });
  return [button];
}

// Null: one of the runs has no operations, and that is said.
function drawTimelines() {
  const silent = ['a', 'b'].filter((which) => data[which].timeline.why_empty);
  if (silent.length > 0) {
    byId('timeline-tools').hidden = true;
    document.querySelector('#timelines .screen').hidden = true;
    for (const which of silent) {
      sayEmpty(byId(`timeline-place-${which}`),
        `${which.toUpperCase()}: ${data[which].timeline.why_empty}`);
    }
    return null;
  }
  const [a, b] = ['a', 'b'].map((which) =>
    new PairedTimeline(byId(`timeline-place-${which}`), data[which]));
  const pairs = data.a.timeline.steps.map((step, i) => [step, data.b.timeline.steps[i]]);
  const buttons = pairs.map((pair) => {
    const button = element('button', '', pairText(...pair));
    button.type = 'button';
    button.addEventListener('click', () => choose(pair, button));
    return button;
  });
  function choose([stepA, stepB], chosen) {
    for (const button of buttons) button.setAttribute('aria-pressed', String(button === chosen));
    stepTitle('a', stepA);
    stepTitle('b', stepB);
    PairedTimeline.show(a, b, stepA, stepB);
    byId('timeline-place-a').dataset.step = stepA.step;
    byId('timeline-place-b').dataset.step = stepB.step;
    const used = new Set([...a.layout.spans, ...b.layout.spans].map((span) => span.name));
    legend(byId('timeline-legend'), [...stageColours].filter(([name]) => used.has(name)));
  }
  byId('timeline-tools').append(...buttons, ...deviceSwitch(() => {
    const i = buttons.findIndex((button) => button.getAttribute('aria-pressed') === 'true');
    choose(pairs[i], buttons[i]);
  }));
  const typical = Math.max(0, pairs.findIndex(([step]) => step.why.includes('median')));
  choose(pairs[typical], buttons[typical]);
  return [a, b];
}
