// A diagram over steps: axes, a curve, marks of changes, a cursor that follows the pointer.

let plotWidth = 1180;  // of the window, so that text keeps its size
const margin = { left: 64, right: 12, top: 20, bottom: 22 };

// About `count` round values from low to high.
function ticks(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const width = [1, 2, 2.5, 5, 10].map((m) => m * power).find((w) => w >= raw * (1 - 1e-9));
  const made = [];
  const first = Math.ceil(low / width - 1e-9) * width;
  for (let tick = first; tick <= high + width * 1e-6; tick += width) {
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
    this.labelled(values, (value) => value.toFixed(digits));
    this.stepAxis();
  }

  labelled(values, textOf) {
    for (const value of values) {
      const y = this.y(value);
      this.root.append(
        svg('line', { class: 'grid', x1: margin.left, x2: plotWidth - margin.right, y1: y, y2: y }),
        svg('text', { x: margin.left - 8, y: y + 4, 'text-anchor': 'end' }, textOf(value)));
    }
  }

  stepAxis() {
    const numbers = ticks(this.firstStep + 1, this.lastStep + 1, plotWidth / 115).values
      .filter((number) => Math.abs(number - Math.round(number)) < 1e-6).map(Math.round);
    for (const number of numbers.length > 0 ? numbers : [Math.ceil(this.firstStep + 1)]) {
      this.root.append(svg('text', { x: this.x(number - 1), y: this.height - 6,
        'text-anchor': 'middle' }, grouped(number)));
    }
  }

  // `points` of [step, value]; null is a gap. `which` tells one curve of several from the others.
  curve(points, which = '') {
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
    this.root.append(svg('path', { class: `curve ${which}`, d: path }));
    if (points.length > 120) return;
    for (const [step, value] of points) {
      if (value === null) continue;
      this.root.append(
        svg('circle', { class: `point ${which}`, cx: this.x(step), cy: this.y(value), r: 2.5 }));
    }
  }

  // Changes of knobs, `before` steps to the left; texts that would overlap are left out.
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
    const cursor = svg('line',
      { class: 'cursor', y1: margin.top, y2: this.height - margin.bottom });
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
