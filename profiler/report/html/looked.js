// Analyses without a result: those that could not look first, then those that found nothing.
function drawLooked() {
  const { answered, lines } = data.looked;
  const list = byId('looked-list');
  for (const line of lines) {
    list.append(element('li', line.is_warning ? 'warning' : '', line.words));
  }
  if (answered) list.append(element('li', '', answered));
}
