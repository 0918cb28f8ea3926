"use strict";
// The data of the report: what every part needs at once, and packets and their details unpacked when needed.

const report = JSON.parse(byId("report").textContent);
for (const one of report.sessions) for (const name of ["start", "end"]) one[name] ??= NO_TIME;
const SEVERITIES = ["", "NOTE", "SHOULD", "MUST", "ATTACK"];
const packets = { count: 0, names: [], texts: [] };

async function unpacked(id) {
  const holder = byId(id);
  const packed = Uint8Array.from(atob(holder.textContent.trim()), (one) => one.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Unpack the table of packets: columns as arrays of numbers, by their names. */
async function unpackPackets() {
  const data = await unpacked("packet-table");
  packets.count = data.count;
  packets.names = data.names;
  packets.texts = data.texts;
  for (const [name, column] of Object.entries(data.columns)) packets[name] = Float64Array.from(column);
  byId("packet-table").remove();
}

function rowTime(row) {
  return [packets.seconds[row], packets.nanoseconds[row]];
}

function rowGroup(row) {
  return report.groups[packets.group[row]];
}

function rowName(column, row) {
  return packets.names[packets[column][row]];
}

function rowText(column, row) {
  return packets.texts[packets[column][row]];
}

/** Whether a packet goes from the left end of its session to the right. */
function goesRight(row) {
  const session = report.sessions[packets.session[row]];
  return session === undefined || rowName("src", row) === session.left;
}

/** Whether something about a packet wants to be looked at: more than a NOTE. */
function isNotable(row) {
  return packets.severity[row] > SEVERITIES.indexOf("NOTE") || packets.again[row] > 0 || ["malformed", "gap"].includes(rowGroup(row));
}

const lives = { count: 0, texts: [] };

/** Unpack the lives of messages; `lives.first` has the place of the first event of each. */
async function unpackLives() {
  const data = await unpacked("life-table");
  Object.assign(lives, data.columns, { texts: data.texts, latencies: data.latencies, events: data.events, count: data.columns.state.length });
  lives.first = [];
  let first = 0;
  for (const count of lives.event_count) {
    lives.first.push(first);
    first += count;
  }
  byId("life-table").remove();
}

function lifeText(column, life) {
  return lives.texts[lives[column][life]];
}

const FRAMES_MAX = 2 ** 32;
let rowsOfFrames = null;

/** Find the rows by file and frame; files of events are numbered by other texts than those of packets. */
function indexFrames() {
  const files = new Map(packets.names.map((name, number) => [name, number]));
  rowsOfFrames = { rows: new Map(), files: lives.texts.map((text) => files.get(text)), addresses: packets.names.map(addressOf) };
  for (let row = packets.count - 1; row >= 0; row -= 1) {
    rowsOfFrames.rows.set(packets.file[row] * FRAMES_MAX + packets.last_frame[row], row);
  }
}

/** Return the address of an endpoint, without its port and without brackets. */
function addressOf(endpoint) {
  return endpoint.slice(0, Math.max(0, endpoint.lastIndexOf(":"))).replace(/^\[|\]$/g, "");
}

/** Return the row of the packet that an event is about: one of its sender that its frame completed; -1 for none. */
function rowOfEvent(event) {
  if (rowsOfFrames === null) indexFrames();
  const { file, frame, src } = lives.events;
  const row = rowsOfFrames.rows.get(rowsOfFrames.files[file[event]] * FRAMES_MAX + frame[event]);
  return row !== undefined && rowsOfFrames.addresses[packets.src[row]] === lives.texts[src[event]] ? row : -1;
}

function eventsOf(life) {
  return Array.from({ length: lives.event_count[life] }, (_, place) => lives.first[life] + place);
}

let livesOfRows = null;

/** Return the life that a packet belongs to; -1 for none. A packet may belong to many: the first one counts. */
function lifeOf(row) {
  if (livesOfRows === null) {
    livesOfRows = new Map();
    for (let life = 0; life < lives.count; life += 1) {
      for (const event of eventsOf(life)) {
        const of = rowOfEvent(event);
        if (of >= 0 && packets.body_size[of] >= 0 && !livesOfRows.has(of)) livesOfRows.set(of, life);
      }
    }
  }
  const life = livesOfRows.get(row);
  return life === undefined ? -1 : life;
}

let rowsOfSessions = null;

/** Return the rows of a session, in their order. */
function rowsOf(session) {
  if (rowsOfSessions === null) {
    rowsOfSessions = report.sessions.map(() => []);
    for (let row = 0; row < packets.count; row += 1) {
      if (packets.session[row] >= 0) rowsOfSessions[packets.session[row]].push(row);
    }
  }
  return rowsOfSessions[session] || [];
}

const placesOfDetails = new Map(report.details.rows.map((row, place) => [row, place]));
const pieces = new Map();
const PIECES_KEPT = 8;

function hasDetail(row) {
  return placesOfDetails.has(row);
}

/** Return the fields and bytes of a packet; null if they are not in the report. */
async function detailOf(row) {
  const place = placesOfDetails.get(row);
  if (place === undefined) return null;
  const number = Math.floor(place / report.details.piece);
  if (!pieces.has(number)) {
    if (pieces.size >= PIECES_KEPT) pieces.delete(pieces.keys().next().value);
    pieces.set(number, unpacked(`details-${number}`));
  }
  return (await pieces.get(number))[place % report.details.piece];
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
}
