// What the threads did on the processors, where the run was sampled.

const perCentWhole = (share) => `${Math.round(share * 100)}${thin}%`;

// The share of samples in a function, with the points by which it may be off.
function sampledShare(share, uncertainty) {
  const points = Math.max(1, Math.round(100 * uncertainty));
  return `${perCentWhole(share)} \u00b1${points}`;
}

function functionTable(functions) {
  const columns = [{ title: 'own time', num: true }, { title: 'with what it called', num: true },
    { title: 'function' }, { title: 'library' }];
  return table(columns, functions.map((one) => {
    const name = element('span', 'function', one.short_name);
    name.title = one.name;
    return [sampledShare(one.self_share, one.uncertainty), perCentWhole(one.total_share), name,
      one.library];
  }));
}

function threadTable(threads) {
  const columns = [{ title: 'thread' }, { title: 'running', num: true },
    { title: 'preempted', num: true }, { title: 'waiting', num: true }, { title: '' },
    { title: 'samples', num: true }];
  return table(columns, threads.map((thread) => [
    `${thread.name || 'thread'} ${thread.tid}`, perCentWhole(thread.shares.running),
    perCentWhole(thread.shares.preempted), perCentWhole(thread.shares.waiting),
    meter(thread.shares.running, causeColours.get('host kernels') || unknownColour),
    grouped(thread.sample_count)]));
}

function drawProcessors() {
  if (data.samples === null) return;
  byId('processors').hidden = false;
  const { samples } = data;
  const place = byId('processor-tables');
  if (samples.threads.length === 0) {
    sayEmpty(place, `${samples.why_none}.`);
    return;
  }
  byId('processor-unit').textContent = `the whole record: ${grouped(samples.sample_count)} ` +
    `samples in ${time(samples.running_ns)} of running threads`;
  sayLate('processor-losses', samples.lost_count > 0
    ? `${grouped(samples.lost_count)} more records were lost.` : '');
  const threadsShown = 8;
  const left = samples.thread_count - Math.min(threadsShown, samples.threads.length);
  place.append(threadTable(samples.threads.slice(0, threadsShown)));
  if (left > 0) place.append(element('p', 'unit', `and ${left} more that ran less`));
  if (samples.why_none !== null) {
    place.append(element('p', 'empty', `${samples.why_none}.`));
    return;
  }
  place.append(element('h3', '', 'Functions'), functionTable(samples.by_self));
  for (const stage of samples.stages.slice(0, 6)) {
    const threads = stage.threads === null ? 'all threads' : `threads named ${stage.threads}`;
    const functions = element('details');
    functions.append(element('summary', '', `While ${stage.name} was under way: ` +
      `${grouped(stage.sample_count)} samples of ${threads}`), functionTable(stage.by_self));
    place.append(functions);
  }
}
