// All runs: a table that is sorted by a click on a column's title and filtered by words. Ticked
// runs have their curves below.

const chosen = new Map();  // row -> colour's place; in order of their choice
let sortedBy = -1;
let isDescending = false;

const hasCurves = (row) => row.curves !== null;
const wordsOf = (row) => [row.name, ...row.cells.map((cell) => cell[1])].join(' ').toLowerCase();

function choose(row) {
  if (chosen.size >= data.overlaid_max) return;
  const taken = new Set(chosen.values());
  chosen.set(row, data.run_colours.findIndex((_, i) => !taken.has(i)));
}

// Numbers before texts, what is not there last whichever way it is sorted.
function compareCells(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  const isDown = isDescending ? -1 : 1;
  const numbers = [Number(a), Number(b)];
  if (numbers.every((number) => !Number.isNaN(number))) return (numbers[0] - numbers[1]) * isDown;
  const are = numbers.map((number) => Number.isNaN(number));
  if (are[0] !== are[1]) return (are[0] - are[1]) * isDown;
  return (a < b ? -1 : a > b ? 1 : 0) * isDown;
}

function shownRows() {
  const words = byId('filter').value.toLowerCase().split(/\s+/).filter((word) => word !== '');
  const rows = data.rows.filter((row) => words.every((word) => wordsOf(row).includes(word)));
  if (sortedBy < 0) return rows;
  return rows.map((row, i) => [row, i]).sort(([a, i], [b, k]) =>
    compareCells(a.cells[sortedBy][0], b.cells[sortedBy][0]) || i - k).map(([row]) => row);
}

function titleCell(column, index) {
  const cell = element('th', column.is_text ? '' : 'num');
  const button = element('button', '', column.title);
  button.type = 'button';
  button.title = column.is_setting ? `setting ${column.key}` : column.key;
  if (sortedBy === index)
    cell.setAttribute('aria-sort', isDescending ? 'descending' : 'ascending');
  button.addEventListener('click', () => {
    isDescending = sortedBy === index && !isDescending;
    sortedBy = index;
    drawRuns();
  });
  cell.append(button);
  return cell;
}

function tickCell(row) {
  const cell = element('td');
  const box = element('input');
  box.type = 'checkbox';
  box.checked = chosen.has(row);
  box.disabled = !hasCurves(row) || (!box.checked && chosen.size >= data.overlaid_max);
  box.title = hasCurves(row) ? `curves of ${row.name}`
    : 'no curves: it has no steps, cannot be read, or is behind the first ' +
      `${data.curves_max} runs`;
  box.addEventListener('change', () => {
    if (box.checked) choose(row);
    else chosen.delete(row);
    drawRuns();
    drawPlots();
  });
  cell.append(box);
  if (chosen.has(row)) cell.append(dot(data.run_colours[chosen.get(row)]));
  return cell;
}

function drawRuns() {
  const rows = shownRows();
  const made = element('table');
  const head = element('tr');
  head.append(element('th'), ...data.columns.map(titleCell));
  made.append(element('thead'), element('tbody'));
  made.firstChild.append(head);
  for (const row of rows) {
    const line = element('tr', row.is_amiss ? 'amiss' : '');
    line.append(tickCell(row));
    data.columns.forEach((column, i) => {
      const isName = column.key === 'path' && !column.is_setting;
      const text = isName ? row.name : row.cells[i][1];
      const cell = element('td', `${column.is_text ? '' : 'num'} ` +
        `${column.is_setting ? 'setting' : ''}`, text);
      cell.title = isName ? row.remarks : row.cells[i][1];
      line.append(cell);
    });
    made.lastChild.append(line);
  }
  byId('run-table').replaceChildren(made);
  byId('filter-count').textContent = rows.length === data.rows.length ? ''
    : `${grouped(rows.length)} of ${grouped(data.rows.length)}`;
}

function startRuns() {
  byId('name').textContent = `${grouped(data.rows.length)} runs`;
  byId('runs-unit').textContent = `tick up to ${data.overlaid_max} to see their curves`;
  data.rows.filter(hasCurves).slice(0, 4).forEach(choose);
  byId('filter').addEventListener('input', drawRuns);
  drawRuns();
}
