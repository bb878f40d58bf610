// Puts the page together: the last of the scripts.

startTheme();
drawHead();
drawLosses();
drawDoubts();
drawVerdict();
drawStretches();
drawNext();
drawLooked();
drawPlots();
addEventListener('resize', drawPlots);
drawLinks();
drawDevices();
drawProcessors();
const timeline = drawTimeline();
if (timeline !== null) redrawCanvases = () => timeline.draw();
drawFacts();
document.documentElement.dataset.drawn = 'yes';
