// Check the search of a built site: `node tools/search_site.cjs build/docs` runs it as a browser does, and fails unless
// the first result of each word of docs/search.json is its page.
const fs = require("fs");
const vm = require("vm");

const site = process.argv[2];
const words = Object.entries(JSON.parse(fs.readFileSync(`${__dirname}/../docs/search.json`)));
const page = { addEventListener() {}, getElementById: () => null, readyState: "loading" };
const browser = vm.createContext({ document: page, window: {}, _ready() {}, _: (text) => text });
const load = (name) => vm.runInContext(fs.readFileSync(`${site}/${name}`, "utf8"), browser, { filename: name });

load("_static/language_data.js");
vm.runInContext("var Stemmer = window.Stemmer, DOCUMENTATION_OPTIONS = {}, SPHINX_HIGHLIGHT_ENABLED = false", browser);
load("_static/searchtools.js");
load("searchindex.js");

const first = (word) => {
  browser.word = word;
  // Sphinx sorts the best to the end
  const [best] = vm.runInContext("Search._performSearch(...Search._parseQuery(word))", browser).slice(-1);
  return best && best[0];
};
const wrong = words.filter(([word, expected]) => first(word) !== expected);
wrong.forEach(([word, expected]) => console.error(`search: ${word} finds ${first(word)} first, not ${expected}`));
process.exit(wrong.length ? 1 : 0);
