/** Recordings, pushes and dumps of one stream. */
import { useState } from 'preact/hooks';
import { Action, faultWords } from './action.ts';
import type { StreamPart } from './context.ts';
import { bytes, duration } from './format.ts';
import { html, type View } from './html.ts';
import { WriteButton } from './permission.ts';
import { appOf, of, STREAM } from './stream-list.ts';
import { useLive } from './use-live.ts';

/** A displayed task of any kind. */
interface Line {
  readonly kind: 'Recording' | 'Push' | 'Dump';
  readonly id: string;
  readonly state: string;
  readonly where: string;
  readonly amount: string;
  readonly stop: () => Promise<unknown>;
}

/** `outputs`: names of the output streams, on which tasks work. */
export function TaskPanel({ context, name, outputs }: StreamPart): View {
  const { client, updates } = context;
  const app = appOf(name);
  const key = `tasks ${name.vhost}/${name.app}/${name.stream} ${outputs.join(' ')}`;
  const { data, refresh } = useLive(updates, key, async (): Promise<Line[]> => {
    const own = (task: { readonly stream: { readonly name: string } }): boolean => outputs.includes(task.stream.name);
    const [records, pushes, dumps] = await Promise.all([
      client.get('/v1/vhosts/{vhost}/apps/{app}:records', app).catch(() => []),
      client.get('/v1/vhosts/{vhost}/apps/{app}:pushes', app).catch(() => []),
      Promise.all(
        outputs.map((output) => client.post(`${STREAM}:hlsDumps`, { ...of(name), body: { outputStreamName: output } }).catch(() => [])),
      ),
    ]);
    return [
      ...records.filter(own).map(
        (task): Line => ({
          kind: 'Recording',
          id: task.id,
          state: task.reason === undefined ? task.state : `${task.state}: ${task.reason}`,
          where: task.outputFilePath ?? '',
          amount: `${bytes(task.totalRecordBytes ?? 0)}, ${duration(task.totalRecordTime ?? 0)}`,
          stop: () => client.post('/v1/vhosts/{vhost}/apps/{app}:stopRecord', { ...app, body: { id: task.id } }),
        }),
      ),
      ...pushes.filter(own).map(
        (task): Line => ({
          kind: 'Push',
          id: task.id,
          state: task.reason === undefined ? task.state : `${task.state}: ${task.reason}`,
          where: task.url,
          amount: `${bytes(task.totalsentBytes)}, ${duration(task.totalsentTime)}`,
          stop: () => client.post('/v1/vhosts/{vhost}/apps/{app}:stopPush', { ...app, body: { id: task.id } }),
        }),
      ),
      ...dumps.flatMap((found, n) =>
        found.map(
          (dump): Line => ({
            kind: 'Dump',
            id: dump.id,
            state: dump.enabled ? 'running' : 'ended',
            where: dump.outputPath,
            amount: '',
            stop: () => client.post(`${STREAM}:stopHlsDump`, { ...of(name), body: { outputStreamName: outputs[n] ?? '', id: dump.id } }),
          }),
        ),
      ),
    ];
  });
  const [output = name.stream] = outputs;
  return html`<section>
    <div class="bar"><h2 id="tasks-title">Recordings, pushes and dumps</h2>
      <${Action} label="Record" run=${() => client.post('/v1/vhosts/{vhost}/apps/{app}:startRecord', { ...app, body: { id: newId('record'), stream: { name: output } } })} onDone=${refresh} />
      <${Target} label="Push" noun="Address" placeholder="rtmp://host/app/key, srt://host:port" start=${(target: string) => client.post('/v1/vhosts/{vhost}/apps/{app}:startPush', { ...app, body: pushOf(output, target) })} onDone=${refresh} />
      <${Target} label="Dump" noun="Folder" placeholder="/folder/of/the/server" start=${(target: string) => client.post(`${STREAM}:startHlsDump`, { ...of(name), body: { id: newId('dump'), outputStreamName: output, outputPath: target } })} onDone=${refresh} />
    </div>
    ${
      (data ?? []).length === 0
        ? html`<p class="quiet">None.</p>`
        : html`<div class="scroll" tabindex="0" role="region" aria-labelledby="tasks-title"><table>
        <thead><tr><th scope="col">Task</th><th scope="col">Kind</th><th scope="col">State</th><th scope="col">Where</th><th scope="col" class="number">So far</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
        <tbody>${data?.map(
          (
            line,
          ) => html`<tr key=${`${line.kind} ${line.id}`}><th scope="row">${line.id}</th><td data-label="Kind">${line.kind}</td><td data-label="State">${line.state}</td><td data-label="Where">${line.where}</td><td class="number" data-label="So far">${line.amount}</td>
            <td class="number last"><${Action} label="Stop" about=${line.id} run=${line.stop} onDone=${refresh} /></td></tr>`,
        )}</tbody></table></div>`
    }
  </section>`;
}

interface TargetOptions {
  readonly label: string;
  readonly noun: string;
  readonly placeholder: string;
  readonly start: (target: string) => Promise<unknown>;
  readonly onDone: () => void;
}

/** A button that asks for the target before it starts. */
function Target({ label, noun, placeholder, start, onDone }: TargetOptions): View {
  const [isOpen, setOpen] = useState(false);
  const [target, setTarget] = useState('');
  const [fault, setFault] = useState('');
  if (!isOpen) return html`<${WriteButton} label=${`${label} …`} onClick=${() => setOpen(true)} />`;
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await start(target.trim());
      setOpen(false);
      setFault('');
      onDone();
    } catch (error) {
      setFault(faultWords(error));
    }
  };
  return html`<form class="inline" onSubmit=${submit}>
    <input required autofocus aria-label=${`${noun} to ${label.toLowerCase()} to`} placeholder=${placeholder} value=${target} onInput=${(event: InputEvent) => setTarget((event.target as HTMLInputElement).value)} />
    <button type="submit">${label}</button><button type="button" onClick=${() => setOpen(false)}>Cancel</button>
    <span role="alert" class="bad">${fault}</span>
  </form>`;
}

/** The last part of an RTMP URL is the stream key, which is a separate member in the API. */
function pushOf(output: string, target: string) {
  const common = { id: newId('push'), stream: { name: output } };
  if (!/^rtmps?:/i.test(target)) return { ...common, protocol: /^srt:/i.test(target) ? 'srt' : 'mpegts', url: target };
  const cut = target.lastIndexOf('/');
  return { ...common, protocol: 'rtmp', url: target.slice(0, cut), streamKey: target.slice(cut + 1) };
}

function newId(kind: string): string {
  return `${kind}-${new Date().toISOString().replace(/\D/g, '').slice(0, 17)}`;
}
