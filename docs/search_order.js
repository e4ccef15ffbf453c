// The order of the site's search results, which Sphinx puts into it (html_search_scorer): decisions come last, and of
// pages alike those that explain come after those that help.
var Scorer = {
  score: ([page, , , , score]) => score - (page.startsWith("decisions/") ? 1000 : page.startsWith("explanation/") ? 1 : 0),
  // the rest is Sphinx's own
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
