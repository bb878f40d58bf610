// Light and dark: as the browser wishes, as the address says (#dark, for whoever links to the page
// or prints it), or as the button was pressed.

// A canvas holds pixels of one theme, so it is drawn anew.
let redrawCanvases = () => {};

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  redrawCanvases();
}

function startTheme() {
  const preferred = matchMedia('(prefers-color-scheme: dark)');
  setTheme(/^#(dark|light)$/.test(location.hash) ? location.hash.slice(1)
    : preferred.matches ? 'dark' : 'light');
  preferred.addEventListener('change', (event) => setTheme(event.matches ? 'dark' : 'light'));
  byId('theme').addEventListener('click', () =>
    setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
  let themeOfScreen = null;
  addEventListener('beforeprint', () => {  // in the colours of paper
    themeOfScreen = document.documentElement.dataset.theme;
    for (const details of document.querySelectorAll('#facts details')) details.open = true;
    setTheme('light');
  });
  addEventListener('afterprint', () => {
    if (themeOfScreen !== null) setTheme(themeOfScreen);
    themeOfScreen = null;
  });
}
