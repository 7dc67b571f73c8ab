/* SPDX-License-Identifier: MIT
 *
 * The page of `aprof flame`. The whole profile lies in typed arrays; d3-flame-graph
 * is only ever given what would be seen: the boxes that are wide enough at the
 * present zoom. Its data is made anew for each zoom, search and switch.
 *
 * What is in #profile: output/page.h.
 */
(function () {
'use strict';

const NARROWEST = 0.7;   /* pixels: a box below is not drawn */
const DRAWN_MOST = 3000; /* boxes: about a quarter of a second; the widest ones then */
const ROW = 18;          /* pixels */
const PACKAGES_SHOWN = 12;
const NONE = -1;

const profile = JSON.parse(document.getElementById('profile').textContent);
const by = id => document.getElementById(id);
const isLoop = new Uint8Array(profile.names.length);
for (const frame of profile.loops) isLoop[frame] = 1;

/* ---- trees ------------------------------------------------------------------
 *
 * Nodes are numbered in the order of a walk, 0 being the root above all stacks, whose
 * frame is NONE: what lies below node n is n + 1 to end[n] - 1. */

function treeOf(metric) {
  const count = metric.up.length + 1;
  const tree = { count, parent: new Int32Array(count), frame: new Int32Array(count), end: new Int32Array(count),
                 self: [new Float64Array(count)], total: [] };
  if (metric.base) tree.self.push(new Float64Array(count));
  tree.parent[0] = tree.frame[0] = NONE;
  for (let node = 1, before = 0; node < count; before = node++) {
    for (let up = metric.up[node - 1]; up > 0; up--) before = tree.parent[before];
    tree.parent[node] = before;
    tree.frame[node] = metric.frame[node - 1];
    tree.self[0][node] = metric.self[node - 1];
    if (metric.base) tree.self[1][node] = metric.base[node - 1];
  }
  return addUp(tree);
}

/* Ends and totals, from the last node to the first. */
function addUp(tree) {
  tree.total = tree.self.map(self => Float64Array.from(self));
  for (let node = tree.count - 1; node >= 0; node--) {
    const parent = tree.parent[node];
    if (!tree.end[node]) tree.end[node] = node + 1;
    if (parent === NONE) continue;
    if (!tree.end[parent]) tree.end[parent] = tree.end[node];
    for (const total of tree.total) total[parent] += total[node];
  }
  return tree;
}

/* The tree without the event loop's frames: what they have goes to who called them,
 * and what they called is put together where it is the same. */
function withoutLoops(tree) {
  const to = new Int32Array(tree.count), found = new Map(), parents = [NONE], frames = [NONE];
  for (let node = 1; node < tree.count; node++) {
    const parent = to[tree.parent[node]], frame = tree.frame[node], key = parent * profile.names.length + frame;
    let kept = isLoop[frame] ? parent : found.get(key);
    if (kept === undefined) {
      kept = parents.push(parent) - 1;
      frames.push(frame);
      found.set(key, kept);
    }
    to[node] = kept;
  }
  return inOrder(tree, to, parents, frames);
}

/* Numbers nodes as they are walked, siblings by frame. */
function inOrder(tree, to, parents, frames) {
  const count = parents.length, child = new Int32Array(count).fill(NONE), sibling = new Int32Array(count).fill(NONE);
  const byFrame = Int32Array.from(frames.keys()).sort((one, other) => frames[other] - frames[one]);
  for (const node of byFrame) {
    if (node === 0) continue;
    sibling[node] = child[parents[node]];
    child[parents[node]] = node;
  }
  const made = { count, parent: new Int32Array(count), frame: new Int32Array(count), end: new Int32Array(count),
                 self: tree.self.map(() => new Float64Array(count)), total: [] };
  const place = new Int32Array(count), waiting = [0];
  for (let next = 0; waiting.length; next++) {
    let node = waiting.pop();
    place[node] = next;
    made.parent[next] = node === 0 ? NONE : place[parents[node]];
    made.frame[next] = frames[node];
    if (sibling[node] !== NONE) waiting.push(sibling[node]);
    if (child[node] !== NONE) waiting.push(child[node]);
  }
  tree.self.forEach((self, side) => {
    for (let node = 0; node < tree.count; node++) made.self[side][place[to[node]]] += self[node];
  });
  return addUp(made);
}

/* ---- state ------------------------------------------------------------------ */

const metrics = profile.metrics.map(metric => ({ ...metric, trees: [null, null] }));
const state = {
  metric: 0,
  side: 0,        /* whose amounts are the widths: NEW or BASE */
  loopsHidden: false,
  inverted: true, /* callers above */
  zoom: 0,        /* node */
  chosen: NONE,   /* node that the keys are at */
  term: '',
  matches: null,  /* Uint8Array by frame */
  dark: matchMedia('(prefers-color-scheme: dark)').matches,
};

function metricNow() { return metrics[state.metric]; }

function treeNow() {
  const trees = metricNow().trees;
  trees[0] = trees[0] || treeOf(metricNow());
  if (state.loopsHidden) trees[1] = trees[1] || withoutLoops(trees[0]);
  return trees[state.loopsHidden ? 1 : 0];
}

/* ---- words ------------------------------------------------------------------ */

function nameOf(tree, node) { return tree.frame[node] === NONE ? 'all' : profile.names[tree.frame[node]]; }

function placeOf(frame) {
  const place = frame === NONE ? NONE : profile.place[frame];
  return place === NONE ? '' : profile.places[place];
}

function packageOf(frame) {
  const place = frame === NONE ? NONE : profile.place[frame];
  return place === NONE ? '' : profile.packages[profile.package[place]];
}

const UNITS = {
  us: [[1, 'µs'], [1e3, 'ms'], [1e6, 's'], [6e7, 'min'], [3.6e9, 'h']],
  bytes: [[1, 'B'], [1024, 'KiB'], [1048576, 'MiB'], [1073741824, 'GiB']],
};

function amount(value) {
  const units = UNITS[metricNow().unit] || UNITS.us;
  let [size, unit] = units[0];
  for (const one of units) if (value >= one[0]) [size, unit] = one;
  return (size === 1 ? value : (value / size).toPrecision(3).replace(/e\+3$/, '')) + ' ' + unit;
}

function exact(value) { return value.toLocaleString('en') + (metricNow().unit === 'us' ? ' µs' : ' bytes'); }

function share(part, whole) {
  if (!whole) return '-';
  const percent = 100 * part / whole;
  return (part > 0 && percent < 0.005 ? '<0.01' : percent.toFixed(2)) + '%';
}

/* [what, text] about a node. */
function tell(tree, node) {
  const total = tree.total[state.side], self = tree.self[state.side], parent = tree.parent[node];
  const lines = [
    ['total', `${amount(total[node])} (${exact(total[node])}), ${share(total[node], total[0])} of total` +
              (parent === NONE ? '' : `, ${share(total[node], total[parent])} of ${nameOf(tree, parent)}`)],
    ['self', `${amount(self[node])} (${exact(self[node])}), ${share(self[node], total[0])} of total`],
  ];
  if (profile.sides)
    lines.push(['change', `${profile.sides[1]} ${share(tree.total[1][node], tree.total[1][0])} → ` +
                `${profile.sides[0]} ${share(tree.total[0][node], tree.total[0][0])}, ${points(change(tree, node))}`]);
  return lines;
}

function points(difference) { return (difference < 0 ? '−' : '+') + Math.abs(100 * difference).toFixed(2) + ' points'; }

/* ---- what would be seen ------------------------------------------------------ */

/* The nodes below (and with) zoom that are wide enough, in the order of the walk. */
function wideNodes(tree, zoom, width) {
  const total = tree.total[state.side], least = total[zoom] * NARROWEST / width, wide = [];
  for (let node = zoom; node < tree.end[zoom];)
    if (total[node] > 0 && (node === zoom || total[node] >= least)) wide.push(node++);
    else node = tree.end[node];
  return wide;
}

/* ... and not more of them than can be drawn at once: the widest. Nobody is wider
 * than who called him, so what is left is a tree still. */
function seenNodes(tree, zoom, width) {
  const total = tree.total[state.side], wide = wideNodes(tree, zoom, width);
  if (wide.length <= DRAWN_MOST) return wide;
  const least = Float64Array.from(wide, node => total[node]).sort()[wide.length - DRAWN_MOST];
  let ties = DRAWN_MOST - wide.reduce((count, node) => count + (total[node] > least), 0);
  return wide.filter(node => total[node] > least || (total[node] === least && ties-- > 0));
}

/* As d3-flame-graph takes it; callers of zoom are as wide as it is. */
function nested(tree, zoom, seen) {
  const made = new Map();
  for (const node of seen) {
    const box = { node, name: nameOf(tree, node), value: tree.total[state.side][node], children: [] };
    made.set(node, box);
    if (node !== zoom) made.get(tree.parent[node]).children.push(box);
  }
  let top = made.get(zoom) || { node: zoom, name: nameOf(tree, zoom), value: 0, children: [] };
  for (let node = tree.parent[zoom]; node !== NONE; node = tree.parent[node])
    top = { node, name: nameOf(tree, node), value: tree.total[state.side][node], children: [top], fade: true };
  return top;
}

/* ---- colours ----------------------------------------------------------------- */

function hash(text) {
  let sum = 2166136261;
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 16777619);
  return (sum ^ (sum >>> 15)) >>> 0;
}

function hueOf(name) { return hash(name) * 0.618 % 360; }

/* One hue a package, a little lighter or darker by function. */
function packageColour(name, tone) {
  if (!name) return state.dark ? '#4a525b' : '#c9d0d7';
  const light = state.dark ? 33 + 8 * tone : 66 + 14 * tone;
  return `hsl(${hueOf(name).toFixed(0)} ${state.dark ? 42 : 68}% ${light.toFixed(0)}%)`;
}

function change(tree, node) {
  return tree.total[0][node] / (tree.total[0][0] || 1) - tree.total[1][node] / (tree.total[1][0] || 1);
}

/* Red for more than in BASE, blue for less: the deeper the larger a part of the node it is. */
function changeColour(tree, node) {
  const difference = change(tree, node);
  const most = Math.max(tree.total[0][node] / (tree.total[0][0] || 1), tree.total[1][node] / (tree.total[1][0] || 1));
  const part = most ? Math.sqrt(Math.abs(difference) / most) : 0;
  const light = state.dark ? 30 + 15 * part : 92 - 30 * part;
  return `hsl(${difference < 0 ? 212 : 6} ${(part * 80).toFixed(0)}% ${light.toFixed(0)}%)`;
}

function colour(box) {
  const tree = treeNow(), node = box.data.node, frame = tree.frame[node];
  if (state.matches && frame !== NONE && state.matches[frame]) return state.dark ? '#b0309f' : '#f06be0';
  if (profile.sides) return changeColour(tree, node);
  return packageColour(packageOf(frame), hash(nameOf(tree, node)) % 97 / 97);
}

/* ---- drawing ----------------------------------------------------------------- */

const place = by('chart');

/* What d3-flame-graph asks of the selection that it is given. */
const selection = {
  datum(value) {
    if (!arguments.length) return place.__data__;
    place.__data__ = typeof value === 'function' ? value.call(place, place.__data__) : value;
    return selection;
  },
  each(visit) { visit.call(place, place.__data__); return selection; },
  node() { return place; },
};

function noTip() {}
noTip.show = noTip.hide = noTip;

const chart = flamegraph().cellHeight(ROW).transitionDuration(0).resetHeightOnZoom(true).tooltip(noTip)
  .setColorMapper(colour).setDetailsHandler(noTip).setSearchHandler(noTip);
let isDrawn = false;

function widthNow() { return Math.max(200, place.clientWidth); }

function draw() {
  const tree = treeNow(), width = widthNow(), seen = seenNodes(tree, state.zoom, width);
  const data = nested(tree, state.zoom, seen);
  chart.width(width).inverted(state.inverted);
  if (isDrawn) {
    chart.update(data);
  } else {
    selection.datum(data);
    chart(selection);
  }
  isDrawn = true;
  dress(tree);
  const hidden = tree.end[state.zoom] - state.zoom - seen.length;
  by('hidden').textContent = hidden > 0 ? `${hidden.toLocaleString('en')} narrower boxes not drawn` : '';
  by('reset').disabled = state.zoom === 0;
  document.documentElement.dataset.drawn = 1 + Number(document.documentElement.dataset.drawn || 0);
}

/* Classes that the library does not know; it sets its own at each update. */
function dress(tree) {
  for (const group of place.querySelectorAll('g.frame')) {
    const node = group.__data__.data.node, frame = tree.frame[node];
    group.classList.toggle('chosen', node === state.chosen);
    group.classList.toggle('dim', Boolean(state.matches) && !(frame !== NONE && state.matches[frame]));
  }
}

function boxOf(target) {
  const group = target.closest && target.closest('g.frame');
  return group ? group.__data__.data : null;
}

/* ---- actions ----------------------------------------------------------------- */

function zoomTo(node) {
  state.zoom = state.chosen = node;
  draw();
  tellDetails(node);
}

/* The node of another tree at which the same frames end, or the nearest above; frames of an
 * event loop may be between them in one of the trees only. */
function follow(from, node, to) {
  const frames = [];
  for (; node > 0; node = from.parent[node]) if (!isLoop[from.frame[node]] || !state.loopsHidden) frames.push(from.frame[node]);
  let at = 0;
  while (frames.length) {
    const next = below(to, at, frames.pop());
    if (next === NONE) break;
    at = next;
  }
  return at;
}

function below(tree, node, frame) {
  for (let next = node + 1; next < tree.end[node];) {
    if (tree.frame[next] === frame) return next;
    next = isLoop[tree.frame[next]] ? next + 1 : tree.end[next];
  }
  return NONE;
}

/* Changes what the tree is, and stays where we are in it. */
function changeTree(how) {
  const before = treeNow(), zoom = state.zoom;
  how();
  const tree = treeNow();
  state.zoom = follow(before, zoom, tree);
  if (!tree.total[state.side][state.zoom]) state.zoom = 0;
  state.chosen = NONE;
  showSwitches();
  showPackages();
  search(state.term);
}

function search(term) {
  state.term = term;
  state.matches = null;
  by('matches').textContent = '';
  if (term) findMatches(term);
  draw();
}

function matcherOf(term) {
  try {
    const pattern = new RegExp(term, 'i');
    return text => pattern.test(text);
  } catch (error) { /* not one: a text */
    const plain = term.toLowerCase();
    return text => text.toLowerCase().includes(plain);
  }
}

function findMatches(term) {
  const matches = matcherOf(term), tree = treeNow(), total = tree.total[state.side];
  state.matches = new Uint8Array(profile.names.length);
  for (let frame = 0; frame < profile.names.length; frame++)
    state.matches[frame] = matches(placeOf(frame) ? `${profile.names[frame]} (${placeOf(frame)})` : profile.names[frame]);
  let sum = 0;
  for (let node = 1; node < tree.count;) /* what is below a match is in it already */
    if (state.matches[tree.frame[node]]) {
      sum += total[node];
      node = tree.end[node];
    } else {
      node++;
    }
  by('matches').textContent = `${share(sum, total[0])} of total, ${amount(sum)}`;
  by('matches').title = exact(sum);
}

function largestMatch() {
  const tree = treeNow(), total = tree.total[state.side];
  let largest = NONE;
  for (let node = 1; node < tree.count; node++)
    if (state.matches && state.matches[tree.frame[node]] && (largest === NONE || total[node] > total[largest])) largest = node;
  return largest;
}

/* ---- switches ---------------------------------------------------------------- */

function buttonOf(text, action) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = text;
  button.addEventListener('click', action);
  return button;
}

function showSwitches() {
  const bar = by('metrics');
  bar.replaceChildren(...metrics.map((metric, at) => {
    const button = buttonOf(metric.name, () => changeTree(() => { state.metric = at; }));
    button.title = metric.what + ' (M)';
    button.setAttribute('aria-pressed', at === state.metric);
    return button;
  }));
  by('sides').hidden = !profile.sides;
  by('sides').replaceChildren(...(profile.sides || []).map((side, at) => {
    const button = buttonOf(side, () => changeTree(() => { state.side = at; }));
    button.title = 'whose times are the widths';
    button.setAttribute('aria-pressed', at === state.side);
    return button;
  }));
  const total = treeNow().total[state.side][0];
  bar.append(' ' + amount(total));
  by('loops').setAttribute('aria-pressed', state.loopsHidden);
  by('loops').disabled = profile.loops.length === 0;
  by('flip').textContent = state.inverted ? 'Flame' : 'Icicle';
  by('theme').textContent = state.dark ? 'Light' : 'Dark';
  document.documentElement.dataset.theme = state.dark ? 'dark' : 'light';
}

/* Self time by package, the largest first. */
function packageSums(tree) {
  const byFrame = new Float64Array(profile.names.length), sums = new Map();
  for (let node = 1; node < tree.count; node++) byFrame[tree.frame[node]] += tree.self[0][node];
  byFrame.forEach((self, frame) => sums.set(packageOf(frame), (sums.get(packageOf(frame)) || 0) + self));
  return [...sums].filter(row => row[1] > 0).sort((one, other) => other[1] - one[1]);
}

/* The key to the colours. */
function showPackages() {
  if (profile.sides) return;
  const tree = treeNow();
  tree.packages = tree.packages || packageSums(tree);
  by('packages').replaceChildren(...tree.packages.slice(0, PACKAGES_SHOWN).map(([name, self]) => {
    const row = document.createElement('span'), chip = document.createElement('i');
    chip.style.background = packageColour(name, 0.5);
    row.append(chip, `${name || '[markers]'} ${share(self, tree.total[0][0])}`);
    row.title = exact(self) + ' self';
    return row;
  }));
}

function flip() {
  state.inverted = !state.inverted;
  showSwitches();
  draw();
  scrollTo(0, state.inverted ? 0 : document.documentElement.scrollHeight);
}

function changeTheme() {
  state.dark = !state.dark;
  showSwitches();
  showPackages();
  draw();
}

/* ---- pointer ----------------------------------------------------------------- */

function tellDetails(node) {
  const tree = treeNow();
  by('details').textContent = node === NONE ? '' : `${nameOf(tree, node)}${placeText(tree.frame[node])}: ${tell(tree, node)[0][1]}`;
}

function placeText(frame) { return placeOf(frame) ? ` (${placeOf(frame)})` : ''; }

function showTip(event, node) {
  const tip = by('tip'), tree = treeNow(), head = document.createElement('b');
  head.textContent = nameOf(tree, node);
  const lines = [[placeOf(tree.frame[node]), ''], ...tell(tree, node)].filter(line => line[0]).map(([what, text]) => {
    const line = document.createElement('span');
    line.textContent = text ? `${what}: ${text}` : what;
    return line;
  });
  tip.replaceChildren(head, ...lines);
  tip.hidden = false;
  const right = event.clientX + 14 + tip.offsetWidth > innerWidth, low = event.clientY + 18 + tip.offsetHeight > innerHeight;
  tip.style.left = Math.max(4, right ? event.clientX - 10 - tip.offsetWidth : event.clientX + 14) + 'px';
  tip.style.top = Math.max(4, low ? event.clientY - 10 - tip.offsetHeight : event.clientY + 18) + 'px';
}

/* Ours, in the first phase: the library would zoom within the few boxes that it knows. */
place.addEventListener('click', event => {
  const box = boxOf(event.target);
  if (!box) return;
  event.stopPropagation();
  by('tip').hidden = true;
  zoomTo(box.node);
}, true);

place.addEventListener('mousemove', event => {
  const box = boxOf(event.target);
  by('tip').hidden = !box;
  if (!box) return;
  showTip(event, box.node);
  tellDetails(box.node);
});

place.addEventListener('mouseleave', () => {
  by('tip').hidden = true;
  tellDetails(state.chosen);
});

/* ---- keys -------------------------------------------------------------------- */

/* Where an arrow leads among the boxes that are drawn. */
function step(key) {
  const tree = treeNow(), drawn = new Set([...place.querySelectorAll('g.frame')].map(group => group.__data__.data.node));
  const at = drawn.has(state.chosen) ? state.chosen : state.zoom;
  const outward = state.inverted ? 'ArrowUp' : 'ArrowDown', inward = state.inverted ? 'ArrowDown' : 'ArrowUp';
  let next = at;
  if (key === outward) next = tree.parent[at];
  else if (key === inward) next = widest(tree, at, drawn);
  else next = neighbour(tree, at, key === 'ArrowRight' ? 1 : -1, drawn);
  if (next !== NONE) choose(next);
}

function childrenOf(tree, node) {
  const children = [];
  for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) children.push(child);
  return children;
}

function widest(tree, node, drawn) {
  const total = tree.total[state.side];
  return childrenOf(tree, node).filter(child => drawn.has(child))
    .reduce((best, child) => best === NONE || total[child] > total[best] ? child : best, NONE);
}

function neighbour(tree, node, direction, drawn) {
  if (tree.parent[node] === NONE) return NONE;
  const siblings = childrenOf(tree, tree.parent[node]).filter(sibling => drawn.has(sibling));
  return siblings[siblings.indexOf(node) + direction] ?? NONE;
}

function choose(node) {
  const tree = treeNow();
  state.chosen = node;
  dress(tree);
  tellDetails(node);
  const group = place.querySelector('g.chosen');
  if (group) group.scrollIntoView({ block: 'nearest' });
}

const keys = {
  Enter: () => zoomTo(state.chosen === NONE ? state.zoom : state.chosen),
  Escape: () => zoomTo(0),
  Home: () => zoomTo(0),
  Backspace: () => zoomTo(Math.max(0, treeNow().parent[state.zoom])),
  '/': () => by('search').focus(),
  m: () => changeTree(() => { state.metric = (state.metric + 1) % metrics.length; }),
  l: () => by('loops').click(),
  i: flip,
  d: changeTheme,
  '?': () => by('keys').showModal(),
};
for (const key of ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight']) keys[key] = () => step(key);

addEventListener('keydown', event => {
  const typing = event.target === by('search');
  if (event.ctrlKey || event.metaKey || event.altKey || by('keys').open) return;
  if (event.target.tagName === 'BUTTON' && (event.key === 'Enter' || event.key === ' ')) return;
  if (typing) {
    searchKey(event);
    return;
  }
  const action = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

function searchKey(event) {
  if (event.key === 'Escape') {
    event.preventDefault();
    by('search').value = '';
    search('');
    place.focus();
  } else if (event.key === 'Enter') {
    search(by('search').value);
    const node = largestMatch();
    place.focus();
    if (node !== NONE) zoomTo(node);
  }
}

/* ---- start ------------------------------------------------------------------- */

function later(action, wait) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, wait);
  };
}

function start() {
  document.title = profile.title + ' - aprof';
  by('title').textContent = profile.title;
  by('facts').textContent = profile.facts.join(' · ');
  if (profile.nothing || !metrics.length) {
    by('nothing').hidden = false;
    by('nothing').textContent = profile.nothing || 'Nothing was recorded here.';
    document.querySelector('.bar').hidden = true;
    document.documentElement.dataset.theme = state.dark ? 'dark' : 'light';
    document.documentElement.dataset.drawn = 1;
    return;
  }
  by('loops').addEventListener('click', () => changeTree(() => { state.loopsHidden = !state.loopsHidden; }));
  by('flip').addEventListener('click', flip);
  by('reset').addEventListener('click', () => zoomTo(0));
  by('theme').addEventListener('click', changeTheme);
  by('help').addEventListener('click', () => by('keys').showModal());
  by('search').addEventListener('input', later(() => search(by('search').value), 150));
  addEventListener('resize', later(draw, 100));
  showSwitches();
  showPackages();
  draw();
}

start();
})();
