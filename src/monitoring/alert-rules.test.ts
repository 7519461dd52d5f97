/** The alert rules of the documentation: each fires when it should, and only then, judged by Prometheus' own tool. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';

const RULES = path.join(import.meta.dirname, '../../docs/monitoring/alert-rules.yml');
/** Labels that Prometheus adds to all series of a target. */
const FROM = 'job="millrace",instance="a"';
const STREAM = 'vhost="v",app="a",stream="s"';

/** Values a minute apart: `0+2x30` begins with 0 and grows by 2, thirty times; `1x30` stays. */
type Series = Readonly<Record<string, string>>;

/** Series for which an alert must fire, and series for which it must not. Names lack `millrace_`; labels are in brackets. */
const CASES: Readonly<Record<string, readonly [bad: Series, good: Series]>> = {
  MillraceDown: [{ up: '0x30' }, { up: '1x30' }],
  MillraceRestarted: [{ process_start_time_seconds: '0+0x10 1 2 3 4x17' }, { process_start_time_seconds: '0x10 1x20' }],
  MillraceDegraded: [{ degraded_reasons: '1x30' }, { degraded_reasons: '0x30' }],
  MillraceEventLoopSlow: [slowLoop('0+90x30'), slowLoop('0+100x30')],
  MillraceDescriptorsScarce: [
    { process_open_fds: '95x30', process_max_fds: '100x30' },
    { process_open_fds: '50x30', process_max_fds: '100x30' },
  ],
  MillraceLogLost: [{ log_lost_lines: '3x30' }, { log_lost_lines: '0x30' }],
  MillraceQueuesDrop: [{ 'queue_dropped_total[queue="push"]': '0+120x30' }, { 'queue_dropped_total[queue="push"]': '0+30x30' }],
  MillraceNewcomersRefused: [{ newcomers_refused_total: '0+1x30' }, { newcomers_refused_total: '7x30' }],
  MillraceOriginMapAway: [
    { 'origin_maps[reachable="no"]': '1x30', 'origin_maps[reachable="yes"]': '1x30' },
    { 'origin_maps[reachable="no"]': '0x30', 'origin_maps[reachable="yes"]': '2x30' },
  ],
  MillraceAccessRefusals: [refused('0+600x30'), refused('0+60x30')],
  MillraceControlServerFails: [{ 'admission_failures_total[server="h"]': '0+1x30' }, { 'admission_failures_total[server="h"]': '2x30' }],
  MillraceSourceSilent: [silent('1x30'), silent('0x30')],
  MillraceStandInOnAir: [{ [`stream_stand_in_on_air[${STREAM}]`]: '1x30' }, { [`stream_stand_in_on_air[${STREAM}]`]: '0x30' }],
  MillraceKeyframesRare: [
    { [`stream_keyframe_interval_seconds[${STREAM}]`]: '20x30' },
    { [`stream_keyframe_interval_seconds[${STREAM}]`]: '2x30' },
  ],
  MillracePartsLate: [share('llhls_late_parts_total', 'llhls_parts_total', 5), share('llhls_late_parts_total', 'llhls_parts_total', 1)],
  MillraceWebrtcLoss: [
    share('webrtc_lost_packets_total', 'webrtc_sent_packets_total', 10),
    share('webrtc_lost_packets_total', 'webrtc_sent_packets_total', 2),
  ],
  MillraceWebrtcOverload: [
    { webrtc_dropped_frames_total: '0x30', webrtc_dropped_events_total: '0+1x30' },
    { webrtc_dropped_frames_total: '9x30', webrtc_dropped_events_total: '0x30' },
  ],
  MillraceSrtPacketsLate: [
    { [`srt_received_late_packets_total[${STREAM}]`]: '0+120x30' },
    { [`srt_received_late_packets_total[${STREAM}]`]: '0+30x30' },
  ],
  MillraceTranscoderDies: [{ transcoder_process_deaths_total: '0+1x30' }, { transcoder_process_deaths_total: '0x15 1x15' }],
  MillraceDeliveryThreadDies: [{ delivery_thread_restarts_total: '0x15 1x15' }, { delivery_thread_restarts_total: '1x30' }],
  MillraceTranscoderFull: [{ transcoder_jobs_refused_total: '0+1x30' }, { transcoder_jobs_refused_total: '4x30' }],
  MillraceRecordingFails: [
    { 'recordings[state="error"]': '0x30', recording_failures_total: '0+1x30' },
    { 'recordings[state="error"]': '0x30', 'recordings[state="recording"]': '1x30', recording_failures_total: '3x30' },
  ],
  MillracePushFails: [{ 'pushes[state="error"]': '2x30' }, { 'pushes[state="error"]': '0x30', 'pushes[state="pushing"]': '2x30' }],
  MillraceDumpFails: [{ dump_failures_total: '0+1x30' }, { dump_failures_total: '1x30' }],
  MillraceChannelTroubled: [{ scheduled_channel_troubles_total: '0+1x30' }, { scheduled_channel_troubles_total: '2x30' }],
  MillraceStreamsUnlabelled: [{ metrics_streams_without_labels: '3x30' }, { metrics_streams_without_labels: '0x30' }],
};

/** A hundred checks per minute, `soon` of which come within 10 ms. */
function slowLoop(soon: string): Series {
  const name = (le: string): string => `event_loop_delay_seconds_bucket[le="${le}"]`;
  return { [name('0.01')]: soon, [name('0.05')]: '0+100x30', [name('+Inf')]: '0+100x30' };
}

function refused(values: string): Series {
  return { 'access_refused_total[direction="playback",protocol="llhls",reason="key"]': values };
}

function silent(connected: string): Series {
  return { [`stream_source_silence_seconds[${STREAM}]`]: '30x30', [`stream_source_connected[${STREAM}]`]: connected };
}

/** `percent` of a hundred per minute. */
function share(part: string, whole: string, percent: number): Series {
  return { [`${part}[${STREAM}]`]: `0+${percent}x30`, [`${whole}[${STREAM}]`]: '0+100x30' };
}

/** The name in the syntax of the tool. */
function seriesName(name: string): string {
  const [, metric = '', labels = ''] = /^(\w+)(?:\[(.*)\])?$/.exec(name) ?? [];
  const prefix = /^(up$|process_)/.test(metric) ? '' : 'millrace_';
  return `${prefix}${metric}{${[FROM, labels].filter((text) => text !== '').join(',')}}`;
}

test('every alert fires in its own case, and not in normal operation', () => {
  const alerts = [...readFileSync(RULES, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  expect(Object.keys(CASES)).toEqual(alerts);
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-alerts-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const tests = [0, 1].map((n) => ({
    name: n === 0 ? 'all fire' : 'none fires',
    interval: '1m',
    input_series: Object.values(CASES).flatMap((both) =>
      Object.entries(both[n] ?? {}).map(([name, values]) => ({ series: seriesName(name), values })),
    ),
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: '20m',
        exp_samples: n === 0 ? alerts.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })) : [],
      },
    ],
  }));
  const file = path.join(folder, 'tests.yml');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }));
  const { status, stdout, stderr } = spawnSync(requireProgram('promtool'), ['test', 'rules', file], { encoding: 'utf8' });
  expect([status, stderr], stdout).toEqual([0, '']);
});
