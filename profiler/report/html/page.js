// Puts the page together: the last of the scripts.

function setTheme(theme, timeline) {
  document.documentElement.dataset.theme = theme;
  if (timeline) timeline.draw();
}

drawHead();
drawLosses();
const preferred = matchMedia('(prefers-color-scheme: dark)');
// A theme in the address (#dark) is for whoever links to the page or prints it.
setTheme(/^#(dark|light)$/.test(location.hash) ? location.hash.slice(1)
  : preferred.matches ? 'dark' : 'light', null);
drawVerdict();
drawStretches();
drawNext();
drawLooked();
drawPlots();
addEventListener('resize', drawPlots);
drawLinks();
drawDevices();
const timeline = drawTimeline();
drawFacts();
preferred.addEventListener('change', (event) =>
  setTheme(event.matches ? 'dark' : 'light', timeline));
byId('theme').addEventListener('click', () =>
  setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark', timeline));
// The canvas holds pixels, so it is drawn anew in the colours of paper.
let themeOfScreen = null;
addEventListener('beforeprint', () => {
  themeOfScreen = document.documentElement.dataset.theme;
  for (const details of document.querySelectorAll('#facts details')) details.open = true;
  setTheme('light', timeline);
});
addEventListener('afterprint', () => {
  if (themeOfScreen !== null) setTheme(themeOfScreen, timeline);
  themeOfScreen = null;
});
document.documentElement.dataset.drawn = 'yes';
