// The timeline of a step before anything is drawn: its spans, the rows that they lie in, and their
// colours.

const labelWidth = 170;
const axisHeight = 26;
const lineHeight = 17;
const groupHeight = 22;
const counterHeight = 40;
const kernelColours = ['#4e79a7', '#6b8fb8', '#3d6a99', '#5a86b5']
  .map((colour) => ({ dark: colour, light: colour }));

// A run has a span as an array; its last element, the index of the span that set it off, may be
// absent.
// Times are nanoseconds from the step's begin; what a span does not have is -1.
function spanOf(run,
  [track, name, lane, ts, dur, waited, byteCount, padding, subgroup, layer, step, cause]) {
  return { track: run.timeline.tracks[track], trackIndex: track, name: run.timeline.names[name],
    lane, ts, dur, waited, bytes: byteCount, padding, subgroup, layer, step, cause };
}

// A span that is no stage has its track's colour: of a GPU's kernels neighbours differ a little.
function colourOf(span) {
  const { name, track } = span;
  if (stageColours.has(name)) return stageColours.get(name);
  if (track.kind === 'waiting') return causeColours.get(name) || unknownColour;
  if (track.kind !== 'cuda') return unknownColour;
  if (/^(memcpy|memset)/.test(name)) return causeColours.get('host link');
  if (track.group === 'synchronization' || track.group === 'CUPTI overhead') return unknownColour;
  let sum = 0;
  for (let i = 0; i < name.length; i += 1) sum = (sum * 31 + name.charCodeAt(i)) % 9973;
  return kernelColours[sum % kernelColours.length];
}

// A counter has no unit but in its name.
function counterValue(name, value) {
  if (/byte|memory/i.test(name)) return bytes(value);
  if (/share/i.test(name)) return perCent(value);
  if (/\(ns\)$/.test(name)) return time(value);
  return Number.isInteger(value) ? grouped(value) : threeDigits(value);
}

// Rows from above: the path of the verdict, groups with their tracks, counters. A track has as many
// lines as it has lanes.
class TimelineLayout {
  // `linesMax`: how many lines of text the lanes of a track may take; `isShown` says which tracks
  // are drawn.
  constructor(run, step, { linesMax = 6, isShown = () => true, hasCounters = true } = {}) {
    this.run = run;
    this.step = step;
    this.linesMax = linesMax;
    this.isShown = isShown;
    // Buckets would be faster for more spans than a page holds; these are scanned.
    this.spans = step.spans.map((span) => spanOf(run, span));
    this.rows = [];
    this.topOfTrack = new Map();   // by the track's index
    this.lineOfTrack = new Map();  // height of its lines
    this.height = axisHeight;
    this.addPath();
    this.addTracks();
    if (hasCounters) this.addCounters();
    this.height += 6;
  }

  addPath() {
    if (this.step.path.length === 0) return;
    this.rows.push({ y: this.height, height: lineHeight, label: 'critical path', isPath: true });
    this.height += lineHeight + 6;
  }

  addGroup(label) {
    this.rows.push({ y: this.height, height: groupHeight, label, isGroup: true });
    this.height += groupHeight;
  }

  addTracks() {
    const lanes = new Map();
    for (const span of this.spans) {
      if (!this.isShown(span.track)) continue;
      lanes.set(span.trackIndex, Math.max(lanes.get(span.trackIndex) || 0, span.lane + 1));
    }
    const { tracks } = this.run.timeline;
    let group = null;
    for (const index of [...lanes.keys()].sort((a, b) => tracks[a].order - tracks[b].order)) {
      const track = tracks[index];
      if (track.group !== group) {
        group = track.group;
        if (track.name !== '') this.addGroup(group);
        else this.height += 4;
      }
      this.addTrack(index, track, lanes.get(index));
    }
  }

  addTrack(index, track, laneCount) {
    // Deep queues have many lanes: together no more than a few lines of text.
    const room = Math.floor(this.linesMax * lineHeight / laneCount);
    const line = Math.max(2, Math.min(lineHeight, room));
    const height = Math.max(lineHeight, laneCount * line);
    this.topOfTrack.set(index, this.height);
    this.lineOfTrack.set(index, line);
    this.rows.push({ y: this.height, height, label: track.name || track.group,
      isTop: track.name === '' });
    this.height += height + 3;
  }

  addCounters() {
    if (this.step.counters.length === 0) return;
    this.addGroup('counters');
    this.height += 2;
    for (const counter of this.step.counters) {
      this.rows.push({ y: this.height, height: counterHeight, label: counter.name, counter });
      this.height += counterHeight + 4;
    }
  }

  get pathRow() {
    return this.rows.length > 0 && this.rows[0].isPath ? this.rows[0] : null;
  }

  isDrawn(span) {
    return this.topOfTrack.has(span.trackIndex);
  }

  lineOf(span) {
    return this.lineOfTrack.get(span.trackIndex);
  }

  topOf(span) {
    return this.topOfTrack.get(span.trackIndex) + span.lane * this.lineOf(span);
  }

  causeOf(span) {
    return span.cause === undefined ? null : this.spans[span.cause];
  }

  // The shortest span at a height that reaches to within `slack` of a time; null: none.
  spanAt(ts, y, slack) {
    let best = null;
    for (const span of this.spans) {
      if (!this.isDrawn(span)) continue;
      const top = this.topOf(span);
      if (y < top || y >= top + this.lineOf(span)) continue;
      if (ts < span.ts - slack || ts > span.ts + span.dur + slack) continue;
      if (best === null || span.dur < best.dur) best = span;
    }
    return best;
  }
}
