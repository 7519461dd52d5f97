/** Answers that may be long, because streams, queues, viewers and items are as many as there are. They hold up nothing. */
import { inSlices } from '../util/in-slices.ts';
import { type Answer, ok, okText } from './envelope.ts';
import { jsonPieces, writeJson } from './json/json-writer.ts';

/** Items that are written at once: they take less than a slice. */
const SHORT = 100;

/** 200 with a list, written in slices if it is long. `shown`: an item as the answer has it, which may have changed between two slices. */
export function okList<Item>(items: readonly Item[], shown: (item: Item) => unknown): Answer | Promise<Answer> {
  return items.length <= SHORT ? ok(items.map(shown)) : longList(items, shown);
}

async function longList<Item>(items: readonly Item[], shown: (item: Item) => unknown): Promise<Answer> {
  let text = '';
  function* write(): Iterable<void> {
    for (const item of items) {
      text += (text === '' ? '[' : ',') + writeJson(shown(item));
      yield;
    }
  }
  await inSlices(write());
  return okText(`${text}]`);
}

/** 200 with `value`, which must not change while it is written. */
export async function okInSlices(value: unknown): Promise<Answer> {
  return okText(await jsonInSlices(value));
}

/** As `writeJson`, in slices. */
export async function jsonInSlices(value: unknown): Promise<string> {
  let text = '';
  function* write(): Iterable<void> {
    for (const piece of jsonPieces(value)) {
      text += piece;
      yield;
    }
  }
  await inSlices(write());
  return text;
}
