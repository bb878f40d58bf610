// Puts the page of many runs together: the last of its scripts.

startTheme();
startRuns();
startCurves();
document.documentElement.dataset.drawn = 'yes';
