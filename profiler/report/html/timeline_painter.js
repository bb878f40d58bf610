// Draws a step's timeline into a canvas, in the colours of the theme.

class TimelinePainter {
  // `view`: begin and end in the step's time, and the width in pixels.
  constructor(context, layout, view) {
    this.context = context;
    this.layout = layout;
    this.view = view;
  }

  x(ts) {
    const { begin, end, width } = this.view;
    return labelWidth + (ts - begin) / (end - begin) * (width - labelWidth);
  }

  // `marked`: the span under the pointer; null: none.
  draw(marked) {
    const { context, layout } = this;
    const { width } = this.view;
    context.clearRect(0, 0, width, layout.height);
    this.drawAxis();
    context.save();
    context.beginPath();
    context.rect(labelWidth, axisHeight, width - labelWidth, layout.height - axisHeight);
    context.clip();
    this.drawPath();
    this.drawSpans();
    for (const row of layout.rows) if (row.counter) this.drawCounter(row);
    if (marked !== null) this.drawMark(marked);
    context.restore();
    this.drawLabels();
  }

  drawAxis() {
    const { context, layout } = this;
    const { begin, end, width } = this.view;
    const { unit, factor } = timeUnit(Math.max(end - begin, 1));
    const { values, digits } = ticks(begin / factor, end / factor, Math.max(3, width / 150));
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.textAlign = 'center';
    for (const value of values) {
      const x = this.x(value * factor);
      if (x < labelWidth) continue;
      context.fillStyle = style('--line');
      context.fillRect(x, axisHeight - 6, 1, layout.height - axisHeight);
      context.fillStyle = style('--dim');
      if (x > labelWidth + 20 && x < width - 24) {
        context.fillText(`${value.toFixed(digits)}${thin}${unit}`, x, axisHeight / 2 - 3);
      }
    }
    for (const [ts, isEnd] of [[0, false], [layout.step.dur, true]]) {  // the step's own ends
      const x = this.x(ts);
      if (x < labelWidth || x > width) continue;
      context.fillStyle = style('--text');
      context.fillRect(isEnd ? x - 1 : x, axisHeight - 8, 1, layout.height - axisHeight);
    }
  }

  drawPath() {
    const row = this.layout.pathRow;
    if (row === null) return;
    for (const [ts, dur, cause] of this.layout.step.path) {
      const colour = causeColours.get(cause) || unknownColour;
      const x = this.x(ts);
      const width = Math.max(0.5, this.x(ts + dur) - x);
      this.context.fillStyle = themed(colour);
      this.context.fillRect(x, row.y + 1, width, row.height - 2);
      this.drawText(cause, x, width, row.y + row.height / 2, colour);
    }
  }

  drawSpans() {
    const { begin, end } = this.view;
    for (const span of this.layout.spans) {
      if (!this.layout.isDrawn(span) || span.ts > end || span.ts + span.dur < begin) continue;
      const colour = colourOf(span);
      const x = this.x(span.ts);
      const own = this.x(span.ts + span.dur) - x;
      const line = this.layout.lineOf(span);
      const y = this.layout.topOf(span);
      this.context.fillStyle = themed(colour);
      // A gap of half a pixel tells neighbours apart.
      this.context.fillRect(x, y + 1, Math.max(0.6, own > 3 ? own - 0.6 : own),
        line > 8 ? line - 3 : line > 3 ? line - 1 : line);
      if (own <= 30 || line <= 11) continue;
      const about = span.layer >= 0 ? ` ${span.layer}`
        : span.subgroup >= 0 ? ` ${span.subgroup}` : '';
      this.drawText(span.name + about, x, own, y + line / 2 - 0.5, colour);
    }
  }

  // From zero, or the lowest value, to the highest in the step; a value holds until the next.
  drawCounter(row) {
    const { context } = this;
    const { begin, end, width } = this.view;
    const { samples } = row.counter;
    const values = samples.map((s) => s[1]).filter((value) => value !== null);
    if (values.length === 0) return;
    const low = Math.min(0, ...values);
    const high = Math.max(...values);
    const y = (value) =>
      row.y + row.height - 1 - (value - low) / (high - low || 1) * (row.height - 4);
    context.fillStyle = style('--line');
    context.fillRect(labelWidth, row.y + row.height - 1, width - labelWidth, 1);
    samples.forEach(([ts, value], i) => {
      const until = i + 1 < samples.length ? samples[i + 1][0] : this.layout.step.dur;
      if (value === null || until < begin || ts > end) return;
      const x = Math.max(labelWidth, this.x(ts));
      const wide = Math.max(0.5, this.x(until) - x);
      context.fillStyle = style('--accent');
      context.globalAlpha = 0.35;
      context.fillRect(x, y(value), wide, row.y + row.height - 1 - y(value));
      context.globalAlpha = 1;
      context.fillRect(x, y(value) - 1, wide, 1.5);
    });
  }

  // An outline around a span, and lines back through what set it off.
  drawMark(marked) {
    const { context, layout } = this;
    const middle = (span) => layout.topOf(span) + layout.lineOf(span) / 2;
    const x = this.x(marked.ts);
    const line = layout.lineOf(marked);
    context.strokeStyle = style('--text');
    context.lineWidth = 1.5;
    context.strokeRect(x, middle(marked) - line / 2 + 1,
      Math.max(1, this.x(marked.ts + marked.dur) - x), Math.max(1, line - 3));
    context.setLineDash([4, 3]);
    context.lineWidth = 1;
    let effect = marked;
    for (let i = 0; i < 12; i += 1) {  // further back it is a tangle
      const cause = layout.causeOf(effect);
      if (cause === null || !layout.isDrawn(cause)) break;
      context.beginPath();
      context.moveTo(this.x(cause.ts + cause.dur), middle(cause));
      context.lineTo(this.x(effect.ts), middle(effect));
      context.stroke();
      effect = cause;
    }
    context.setLineDash([]);
  }

  // On a box of that colour, where it fits.
  drawText(text, x, width, y, colour) {
    const { context } = this;
    const begin = Math.max(x, labelWidth);
    const room = Math.min(x + width, this.view.width) - begin;
    context.font = '10px system-ui, sans-serif';
    if (room < 24 || context.measureText(text).width > room - 6) return;
    context.fillStyle = isDark(themed(colour)) ? '#ffffff' : '#10131a';
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    context.fillText(text, begin + 3, y + 0.5);
  }

  drawCounterScale(row) {
    const values = row.counter.samples.map((s) => s[1]).filter((value) => value !== null);
    this.context.font = '11px system-ui, sans-serif';
    this.context.fillStyle = style('--dim');
    this.context.fillText(values.length === 0 ? 'no value in this step'
      : `to ${counterValue(row.counter.name, Math.max(...values))}`,
    12, row.y + counterHeight - 10);
  }

  drawLabels() {
    const { context } = this;
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    for (const row of this.layout.rows) {
      const isStrong = row.isGroup || row.isPath || row.isTop;
      context.font = `${isStrong ? '600 ' : ''}12px system-ui, sans-serif`;
      context.fillStyle = style(isStrong ? '--text' : '--dim');
      let label = row.label;
      while (label.length > 4 && context.measureText(label).width > labelWidth - 22) {
        label = `${label.slice(0, -2)}\u2026`;
      }
      const height = row.isGroup ? groupHeight : lineHeight;
      context.fillText(label, isStrong ? 0 : 12, row.y + height / 2 + (row.isGroup ? 2 : 0));
      if (row.counter) this.drawCounterScale(row);
      context.fillStyle = style('--line');
      if (row.isGroup) context.fillRect(0, row.y, this.view.width, 1);
    }
  }
}
