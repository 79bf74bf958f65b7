"use strict";
/* The methods of a run beside their frontiers: the explorer's view, on the numbers in the page. */
document.getElementById("methods-view").append(stp.methodView(stp.data));
