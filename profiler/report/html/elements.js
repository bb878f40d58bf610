// Elements that all parts of the page are made of: text, dots, tables, the tip at the pointer.

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function svg(tag, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A colour of `data.colours` for a canvas, which holds pixels of one theme.
const themed = (colour) => colour[document.documentElement.dataset.theme] || colour.light;

// The same for an element, which follows the theme by itself (report.css).
function hued(made, colour) {
  made.classList.add('hued');
  made.style.setProperty('--hue-dark', colour.dark);
  made.style.setProperty('--hue-light', colour.light);
  return made;
}

function isDark(hex) {
  const [red, green, blue] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return 0.3 * red + 0.59 * green + 0.11 * blue < 125;
}

function sayEmpty(place, why) {
  place.replaceChildren(element('p', 'empty', why));
}

const dot = (colour) => hued(element('i', 'dot'), colour);

function legend(place, entries) {
  place.replaceChildren(...entries.map(([name, colour]) => {
    const entry = element('span');
    entry.append(dot(colour), name);
    return entry;
  }));
}

function meter(share, colour) {
  const made = element('div', 'meter');
  const fill = hued(element('div'), colour);
  fill.style.width = `${Math.min(100, Math.max(0, share * 100))}%`;
  made.append(fill);
  return made;
}

function table(columns, rows) {
  const made = element('table');
  const head = element('tr');
  for (const column of columns) head.append(element('th', column.num ? 'num' : '', column.title));
  made.append(element('thead'));
  made.firstChild.append(head);
  const body = element('tbody');
  for (const row of rows) {
    const line = element('tr');
    columns.forEach((column, i) => {
      const cell = element('td', column.num ? 'num' : '');
      cell.append(row[i]);
      line.append(cell);
    });
    body.append(line);
  }
  made.append(body);
  return made;
}

function pairTable(pairs) {
  const made = element('table', 'pairs');
  for (const [key, value] of pairs) {
    const row = element('tr');
    row.append(element('td', '', key), element('td', '', value));
    made.append(row);
  }
  return made;
}

function showTip(event, head, pairs) {
  const tip = byId('tip');
  tip.replaceChildren(element('div', 'head', head));
  for (const [key, value] of pairs) {
    const row = element('div', 'pair');
    row.append(element('span', '', key), element('span', 'num', value));
    tip.append(row);
  }
  tip.hidden = false;
  const room = 14;
  const left = event.clientX + room + tip.offsetWidth > innerWidth
    ? event.clientX - room - tip.offsetWidth : event.clientX + room;
  const top = event.clientY + room + tip.offsetHeight > innerHeight
    ? event.clientY - room - tip.offsetHeight : event.clientY + room;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function hideTip() {
  byId('tip').hidden = true;
}
