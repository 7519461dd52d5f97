/** Deliberate differences from the reference server; `docs/reference/api-differences.md` gives the reasons. */

/** Difference of the answer to a recorded request. */
export interface Deviation {
  readonly status: number;
  /** Message of the answer, if it has only one message. */
  readonly message?: RegExp;
  /** Turns the recorded JSON into our expected answer. */
  readonly body?: (recorded: unknown) => unknown;
  /** As `body`, for answers with changing values: members, types and messages must be equal. */
  readonly shape?: (recorded: unknown) => unknown;
}

/** Differences of recorded exchanges by their number; empty where no recording shows the difference. */
export const DIFFERENCES: Readonly<Record<string, Readonly<Record<number, Deviation>>>> = {
  'product-name': {},
  version: each([1, 17, 20, 22, 55, 58, 59, 61, 68], { status: 200, shape: withOwnVersion }),
  'connection-headers': {},
  'unknown-method': each([50, 51, 71, 72], { status: 501, message: /^\[HTTP\] Not implemented: unknown method \(501\)$/ }),
  'malformed-request': {},
  'chunked-bodies': each([64], { status: 200 }),
  'body-limit': {},
  'json-depth': {},
  'access-tokens': each([7, 8, 10], { status: 200, message: /^OK$/ }),
  'host-names': {},
  'nothing-unprotected': {},
  'known-enables': {},
  'admission-settings': {},
  health: {},
  console: {},
  'server-facts': {},
  drain: {},
  'access-keys': {},
  openapi: {},
  'non-ascii-paths': { 190: { status: 200, message: /^OK$/ }, 191: { status: 400, message: /^\[HTTP\] Malformed request/ } },
  'collection-actions': each([145, 154], { status: 404, message: /Controller not found/ }),
  'host-required': {
    ...each([94, 103, 114, 131], { status: 400 }),
    ...each([142, 160, 173, 176], { status: 404, message: /Could not find the virtual host/ }),
  },
  'addressable-names': {
    ...each([124, 125, 126, 127, 222, 223, 224, 225, 226], { status: 400 }),
    ...each([178, 179, 180, 187, 188], { status: 404, message: /Could not find the virtual host/ }),
  },
  'cross-domain-schemes': {},
  'usable-texts': {},
  'api-macros': {},
  'wrong-types': {
    334: { status: 400, message: /^\[HTTP\] Invalid \[properties\] parameter: it must be an object \(400\)$/ },
    468: { status: 400, message: /Invalid \[segmentationRule\] parameter: it must be continuity or discontinuity/ },
    ...each([474, 477], { status: 200, shape: (recorded) => withoutTask(recorded, 'rec7') }),
    487: { status: 404, message: /There is no record information related to the ID \[rec7\]/ },
    129: { status: 400 },
    171: { status: 404 },
    261: { status: 400, message: /^\[Config\] application\.publishers\.llhls\.segmentDuration must be a number/ },
    ...each([262, 307], { status: 200 }),
  },
  'profile-rules': {},
  'batch-items': {
    ...each([211, 220, 227, 233], { status: 400 }),
    ...each([286, 287, 289, 290, 292, 295], { status: 400, body: asItem }),
  },
  'client-faults': each([232, 437, 461, 509, 544], { status: 400 }),
  'two-spellings': { ...each([236, 238, 239], { status: 200 }), 237: { status: 409 }, 248: { status: 200 } },
  'typed-values': {
    ...each([199, 242, 271], { status: 200, body: withTypes }),
    ...each([123, 221], { status: 200, body: withNamesOfText }),
  },
  distribution: {},
  'both-encodes': each([243, 247], { status: 200 }),
  'bitrate-text': {},
  'key-frame-intervals': {},
  'stream-missing': each([310, 451, 452, 613, 619, 625, 649, 667, 709, 713, 742], {
    status: 404,
    body: () => ({ message: 'Could not find the application or stream (404)', statusCode: 404 }),
  }),
  'channel-missing': each([688, 698], {
    status: 404,
    body: () => ({ message: 'Could not find the application or stream (404)', statusCode: 404 }),
  }),
  'name-conflict': {
    ...each([115, 116, 194, 214, 235, 280], { status: 409, body: withConflicts }),
    ...each([118, 119, 120, 215, 281], { status: 207, body: withConflicts }),
  },
  'internal-errors': {},
  'read-only-methods': { 46: { status: 403, message: /^\[HTTP\] The VirtualHost is read-only: \[default\] \(403\)$/ } },
  'real-numbers': {},
  'virtual-host-order': {},
  'virtual-host-deletion': {},
  'version-2': {},
  'queue-parts': {},
  'codec-modules': {},
  'stale-throughput': {},
  'file-declared-streams': {},
  durable: {},
  'record-duplicate': {},
  'record-reason': {},
  'record-stop-answer': {},
  'record-files': {},
  'record-retry': {},
  'record-containers': {},
  'record-paths': {},
  'record-tracks': {},
  'record-split': {},
  'push-duplicate': { 500: { status: 409, message: /Duplicate ID/ } },
  'push-reason': {},
  'push-tracks': {},
  'push-codecs': {},
  'push-rtmp-first': {},
  'push-port': {},
  'push-stream-key': {
    507: { status: 400, message: /^\[HTTP\] There is no required parameter \[ streamKey\] \(400\)$/ },
    519: { status: 200, shape: (recorded) => withoutTask(recorded, 'p3') },
    529: { status: 404, message: /Could not find id 'p3'/ },
  },
  'push-transport-codecs': {},
  'push-retry': {},
  'push-figures': {},
  'dump-answer': each([540, 549, 555, 556, 559], { status: 200 }),
  'dump-paths': {},
  'dump-folder': {},
  'dump-reason': { 547: { status: 500, message: /\(Could not dump init segment: the file system does not take the folder .+\) \(500\)$/ } },
  'dump-status': {},
  'source-loss': {},
  'packet-silence': {},
  'file-paths': {},
  'file-containers': {},
  'overlay-images': {},
  'pull-deletion': {},
  'origin-schemes': {},
  'ovt-sessions': {},
  'ovt-answers': {},
  'ovt-codecs': {},
  'ovt-events': {},
  'ovt-path': {},
  'ovt-marks': {},
  'ovt-tls': {},
  'ovt-key': {},
  sessions: {},
  'schedule-faults': each([650, 665], { status: 404 }),
  'schedule-patch': each([652, 655], { status: 200, body: (recorded) => recorded }),
  'schedule-position': {},
  'schedule-files': {},
  'schedule-members': {},
  'schedule-times': {},
  'schedule-items': {},
  'stream-warnings': {},
  'event-splices': {},
  'event-bounds': {},
  'channel-deletion': {},
  'channel-faults': {},
  'channel-sources': {},
  'subtitle-bounds': {},
};

function each(numbers: readonly number[], deviation: Deviation): Record<number, Deviation> {
  return Object.fromEntries(numbers.map((n) => [n, deviation]));
}

/** The declarations of a file, with numbers and booleans in place of texts. */
function withTypes(recorded: unknown): unknown {
  return JSON.parse(JSON.stringify(recorded), (_key, value: unknown) => {
    if (value === 'true' || value === 'false') return value === 'true';
    return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  });
}

/** The recorded names as texts, whatever their original type. */
function withNamesOfText(recorded: unknown): unknown {
  return JSON.parse(JSON.stringify(recorded), (key, value: unknown) => (key === 'name' ? String(value) : value));
}

/** Items with an existing name, as the contract describes them. */
function withConflicts(recorded: unknown): unknown {
  const items = recorded as readonly { readonly statusCode: number }[];
  return items.map((item) => (item.statusCode === 409 ? { message: 'Conflict', statusCode: 409 } : item));
}

/** The refusal of a whole request as the refusal of its only item: without prefix and suffix. */
function asItem(recorded: unknown): unknown {
  const { message, statusCode } = recorded as { readonly message: string; readonly statusCode: number };
  return [{ message: message.replace(/^\[HTTP\] (.*) \(400\)$/, '$1'), statusCode }];
}

/** A list of tasks without a task that this server refused. */
function withoutTask(recorded: unknown, id: string): unknown {
  const { response, ...envelope } = recorded as { readonly response: readonly { readonly id: string }[] };
  return { ...envelope, response: response.filter((task) => task.id !== id) };
}

/** The version, with this product's version added. */
function withOwnVersion(recorded: unknown): unknown {
  const { response, ...envelope } = recorded as { readonly response: object };
  return { ...envelope, response: { ...response, millraceVersion: '0.1.0' } };
}
