// Tables: what each change brought, links, devices, facts and settings.

const gainColour = { dark: '#57c08a', light: '#57c08a' };

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
  const parameters = Math.max(1, data.parameters);
  const each = (count) => `${threeDigits(count / parameters)}${thin}B/parameter`;
  byId('stretch-table').append(table(columns, data.stretches.map((stretch) => [
    `${grouped(stretch.first_step)} to ${grouped(stretch.last_step)}`, stretch.settings,
    time(stretch.dur), each(stretch.host_link.read), each(stretch.host_link.write),
    meter(stretch.speed_up / fastest, gainColour),
    `${threeDigits(stretch.speed_up)}${thin}x${stretch.is_speed_up_late ? '*' : ''}`])));
  sayLate('late-speed-ups', data.late_speed_ups);
}

function drawLinks() {
  const { rows, why_empty } = data.links;
  if (rows.length === 0) {
    sayEmpty(byId('link-table'), why_empty);
    return;
  }
  const columns = [{ title: 'link' }, { title: 'direction' }, { title: 'bytes', num: true },
    { title: `bandwidth ${data.words.when_active}`, num: true }, { title: 'limit', num: true },
    { title: 'busy', num: true }, { title: '' }, { title: data.words.of_limit, num: true }];
  const draw = (some) => table(columns, some.map((row) => [
    row.name, row.direction_text, bytes(row.bytes), rate(row.bytes_per_s),
    row.bytes_per_s_max > 0 ? rate(row.bytes_per_s_max) : 'not stated', time(row.busy_ns),
    meter(row.share, causeColours.get(row.is_shared ? 'host link' : row.direction)),
    element('span', row.share > 0.97 ? 'limit' : '', perCent(row.share))]));
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

function drawFacts() {
  const facts = data.facts.map(([key, value]) =>
    [key, key === 'Parameters' && /^\d+$/.test(value) ? grouped(Number(value)) : value]);
  facts.splice(1, 0, ['Steps recorded', grouped(data.step_count)]);
  if (data.changes.length > 0) {
    facts.push(['Changed while it ran', data.changes
      .map(([step, text, who]) => `from step ${stepNumber(step)}: ${text} (asked by: ${who})`)
      .join('\n')]);
  }
  byId('fact-table').replaceChildren(pairTable(facts));
  byId('setting-table').replaceChildren(data.settings.length > 0 ? pairTable(data.settings)
    : element('p', 'empty', 'The database holds no settings.'));
}
