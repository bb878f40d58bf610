'use strict';
// The data of this file's element `data`. All text of the run goes through textContent or a canvas:
// none of it is ever read as HTML.

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

// By name; what has no colour of its own is grey. Each is {dark, light}: on a page of that theme.
const stageColours = new Map(Object.entries(data.colours.stages));
const causeColours = new Map(Object.entries(data.colours.causes));
const phaseColours = new Map(Object.entries(data.colours.phases));
const unknownColour = data.colours.unknown;
