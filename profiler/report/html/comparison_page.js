// Puts the page of a comparison together: the last of its scripts.

startTheme();
drawHead();
drawComparability();
drawVerdict();
drawLooked();
drawFigures();
drawCauses();
drawSettings();
const timelines = drawTimelines();
if (timelines !== null) redrawCanvases = () => timelines.forEach((timeline) => timeline.draw());
drawPlots();
addEventListener('resize', drawPlots);
drawFacts();
document.documentElement.dataset.drawn = 'yes';
