// Why the chosen step took as long as it did, above its timeline.

function difference(ns) {
  return `${ns < 0 ? '\u2212' : '+'}${time(Math.abs(ns))}`;
}

function causeName(cause) {
  const name = element('span', 'cause');
  name.append(dot(causeColours.get(cause.label) || unknownColour), ` ${cause.label}`);
  return name;
}

function causesBeside(step) {
  const columns = [{ title: 'cause' }, { title: 'here', num: true }];
  if (step.usual_dur !== null) {
    columns.push({ title: 'usual', num: true }, { title: 'differs', num: true }, { title: '' });
  }
  return table(columns, step.causes.filter((cause) => cause.is_worth_a_line).map((cause) => {
    const row = [causeName(cause), time(cause.ns)];
    if (step.usual_dur === null) return row;
    return [...row, time(cause.usual_ns), difference(cause.more_ns),
      element('span', 'unit', cause.is_within_noise ? 'within the noise' : '')];
  }));
}

function drawExplanation(place, step) {
  place.replaceChildren();
  if (step === undefined) return;
  const isSlow = step.is_beyond_noise && step.dur > step.usual_dur;
  place.append(element('p', isSlow ? 'late' : '', step.words));
  for (const note of step.notes) place.append(element('p', '', note));
  if (step.why_unknown !== null) {
    place.append(element('p', 'empty', `Its causes are not known: ${step.why_unknown}.`));
    return;
  }
  place.append(causesBeside(step));
  const reasons = element('ul');
  for (const cause of step.causes) {
    if (cause.reason) reasons.append(element('li', '', `${cause.label}: ${cause.reason.words}`));
  }
  if (reasons.childElementCount > 0) place.append(reasons);
}
