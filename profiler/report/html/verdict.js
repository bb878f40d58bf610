// The top of the page: the run and its mode, what was lost, why a step takes as long as it does,
// and what to turn next.

function drawHead() {
  byId('name').textContent = data.name;
  byId('mode').textContent = data.mode;
  byId('mode').classList.toggle('stand-in', data.is_stand_in);
}

function drawLosses() {
  if (data.is_whole) return;
  const place = byId('losses');
  place.hidden = false;
  place.append(element('h2', '', data.losses_words));
  for (const loss of data.losses) {
    const line = element('p');
    line.append(element('b', '', `${loss.name}: ${grouped(loss.value)}. `), loss.description);
    place.append(line);
  }
}

// The basis of figures, where they stand; nothing where there is nothing to say.
function sayLate(id, words) {
  byId(id).hidden = words === '';
  byId(id).textContent = words;
}

// Reasons to doubt the figures: the sentences above the verdict, their marks wherever figures are.
function drawDoubts() {
  if (data.doubts.length === 0) return;
  for (const doubt of data.doubts) {
    if (doubt.sentence === data.losses_words) continue;  // it stands at the top
    byId('doubts').append(element('p', 'late', doubt.sentence));
  }
  for (const id of ['curves', 'phases', 'links', 'devices', 'timeline']) {
    const marks = element('p', 'late doubt-marks',
      data.doubts.map((doubt) => doubt.mark).join(' \u00b7 '));
    marks.title = data.doubts.map((doubt) => doubt.sentence).join('\n');
    byId(id).querySelector('h2').after(marks);
  }
}

// Emulated and simulated times are not called measured.
function measured() {
  if (data.is_simulated) return 'Simulated';
  if (!data.clock) return 'By a clock that is not known,';
  return data.clock === 'emulated' ? 'Measured by the emulated clock' : 'Measured';
}

function drawVerdict() {
  const verdict = data.verdict;
  for (const finding of verdict.findings) {
    byId('verdict-findings').append(
      element('li', finding.is_warning ? 'warning' : '', finding.text));
  }
  if (verdict.why_empty) {
    sayEmpty(byId('verdict-words'), verdict.why_empty);
    return;
  }
  const causes = verdict.causes;
  const parts = wholePerCents(causes.map((cause) => cause.share));
  byId('verdict-title').textContent = `${data.words.why} ${time(verdict.dur)}`;
  byId('verdict-words').textContent = verdictWords(verdict, parts);
  drawShares(causes, parts);
}

// The three largest causes in a sentence, and of which steps the verdict is.
function verdictWords(verdict, parts) {
  const named = verdict.causes.map((cause, i) => [cause, parts[i]]).filter(([, part]) => part > 0);
  const words = named.slice(0, 3).map(([cause, part], i) => i === 0
    ? `${part}${thin}% of it is ${cause.phrase}` : `${part}${thin}% ${cause.phrase}`);
  const steps = verdict.step_count === 1 ? `of step ${stepNumber(verdict.first_step)}`
    : `${verdict.step_count} steps from ${stepNumber(verdict.first_step)} to ` +
      `${stepNumber(verdict.last_step)} together; times are of their median`;
  const rest = named.length > 3 ? '; the rest is below' : '';
  return `${words.join(', ')}${rest}. ${measured()} along the ` +
    `path of operations that waited for one another, ${steps}.`;
}

// As one strip, and as a bar for each cause.
function drawShares(causes, parts) {
  const largest = causes[0].share;
  causes.forEach((cause, i) => {
    const colour = causeColours.get(cause.label) || unknownColour;
    const piece = hued(element('div'), colour);
    piece.style.width = `${cause.share * 100}%`;
    piece.title = `${cause.label} ${parts[i]} %`;
    byId('verdict-strip').append(piece);
    const row = element('div', 'bar-row');
    const track = element('div', 'track');
    const fill = hued(element('div', 'fill'), colour);
    fill.style.width = `${cause.share / largest * 100}%`;
    track.append(fill);
    const label = element('span', '', cause.label);
    label.title = cause.phrase;
    row.append(dot(colour), label, track,
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
        element('span', 'num', `${time(change.ns_before)} \u2192 ${time(change.ns)} ` +
          `(\u2212${Math.round(-change.change * 100)}${thin}%)`),
        element('span', 'why', change.why));
      list.append(row);
    }
  }
  if (next.none) list.prepend(element('p', 'empty', next.none));
  byId('next-note').textContent = next.note;
  sayLate('next-caution', next.caution);
}
