/** Answers that may be long, because streams, queues, viewers and items are as many as there are. They hold up nothing. */
import { textInSlices } from '../util/in-slices.ts';
import { type Answer, ok, okText } from './envelope.ts';
import { jsonPieces, writeJson } from './json/json-writer.ts';

/** Items that are written at once: they take less than a slice. */
const SHORT = 100;

/** 200 with a list, written in slices if it is long. `shown`: an item as the answer has it, which may have changed between two slices. */
export function okList<Item>(items: readonly Item[], shown: (item: Item) => unknown): Answer | Promise<Answer> {
  return items.length <= SHORT ? ok(items.map(shown)) : longList(items, shown);
}

async function longList<Item>(items: readonly Item[], shown: (item: Item) => unknown): Promise<Answer> {
  return okText(await textInSlices(listPieces(items, shown)));
}

/** `shown` is called when the piece of its item is due. */
function* listPieces<Item>(items: readonly Item[], shown: (item: Item) => unknown): Iterable<string> {
  let before = '[';
  for (const item of items) {
    yield before + writeJson(shown(item));
    before = ',';
  }
  yield ']';
}

/** 200 with `value`, which must not change while it is written. */
export async function okInSlices(value: unknown): Promise<Answer> {
  return okText(await jsonInSlices(value));
}

/** As `writeJson`, in slices. */
export function jsonInSlices(value: unknown): Promise<string> {
  return textInSlices(jsonPieces(value));
}
