/** The current and the next item of a scheduled channel. */
import { duration, timeOfDay } from './format.ts';
import { html, type View } from './html.ts';

/** An item of a program; `duration` -1 means up to the end of the file. */
export interface ChannelItem {
  readonly url: string;
  readonly start: number;
  readonly duration: number;
}

/** The displayed members of `GET …/scheduledChannels/{channel}`. */
export interface ScheduledChannelInformation {
  readonly stream: { readonly name: string };
  readonly programs?: readonly {
    readonly name: string;
    readonly scheduled: string;
    readonly repeat: boolean;
    readonly items: readonly ChannelItem[] | null;
  }[];
  readonly fallbackProgram?: { readonly items: readonly ChannelItem[] | null };
  readonly currentProgram?: {
    readonly state: string;
    readonly name?: string;
    readonly scheduled?: string;
    readonly end?: string;
    readonly repeat?: boolean;
    readonly currentItem?: ChannelItem & { readonly currentPosition: number };
  };
}

const HALF = 0.5;
/** Limit of items: more would be too narrow to see. */
const MAX_PIECES = 60;

/** The items of the current program in order, with a mark at the current position; the current and the next item as text. */
export function ChannelTimeline({ channel }: { readonly channel: ScheduledChannelInformation }): View {
  const { currentProgram, programs = [] } = channel;
  const isOn = currentProgram?.state === 'onair';
  const program = programs.find(({ name }) => name === currentProgram?.name);
  const items = program?.items ?? [];
  const current = currentProgram?.currentItem;
  const index = current === undefined ? -1 : items.findIndex(({ url, start }) => url === current.url && start === current.start);
  const known = items.map(({ duration: length }) => Math.max(length, 0));
  const mean = known.reduce((sum, length) => sum + length, 0) / Math.max(1, known.filter((length) => length > 0).length) || 1;
  const widths = known.map((length) => (length > 0 ? length : mean));
  const total = widths.reduce((sum, width) => sum + width, 0) || 1;
  const pieces = items.slice(0, MAX_PIECES).map((item, n) => {
    const share = `${((widths[n] ?? 0) / total) * 100}%`;
    const done =
      n === index && current !== undefined
        ? Math.min(1, current.currentPosition / (item.duration > 0 ? item.duration : (widths[n] ?? 1) / HALF))
        : 0;
    return html`<li key=${n} class=${n === index ? 'now' : ''} style=${{ width: share }} title=${item.url}><span style=${{ width: `${done * 100}%` }}></span></li>`;
  });
  return html`<div class="timeline">
    <p><b>Now</b> ${isOn && current !== undefined ? `${current.url} · ${duration(current.currentPosition)}${current.duration > 0 ? ` of ${duration(current.duration)}` : ''}` : 'off the air'}
      ${currentProgram?.name === undefined ? '' : html` <span class="quiet">in ${currentProgram.name}${currentProgram.end === undefined ? '' : ` until ${timeOfDay(Date.parse(currentProgram.end))}`}</span>`}</p>
    <p><b>Next</b> ${nextOf(channel, items, index)}</p>
    ${items.length === 0 ? null : html`<ol aria-label="Items of the program">${pieces}</ol>`}
  </div>`;
}

function nextOf({ programs = [], currentProgram }: ScheduledChannelInformation, items: readonly ChannelItem[], index: number): string {
  const following = items[index + 1] ?? (currentProgram?.repeat === true ? items[0] : undefined);
  if (index >= 0 && following !== undefined) return following.url;
  const now = Date.now();
  const [later] = programs
    .map(({ name, scheduled }) => ({ name, at: Date.parse(scheduled) }))
    .filter(({ at, name }) => at > now && name !== currentProgram?.name)
    .sort((a, b) => a.at - b.at);
  return later === undefined ? 'nothing is scheduled' : `${later.name} at ${new Date(later.at).toLocaleString()}`;
}
