import { describe, expect, test } from 'vitest';
import { parseServerConfig } from '../../config/index.ts';
import { container, descriptors, udpBuffers, ulimits } from './machine.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const SRT = '<Providers><SRT><Port>9999</Port></SRT></Providers>';
const WEBRTC = '<Publishers><WebRTC><Signalling><Port>3333</Port></Signalling></WebRTC></Publishers>';

function config(bind = '') {
  return parseServerConfig(`<Server version="8"><Type>origin</Type><IP>*</IP><Bind>${bind}</Bind></Server>`, 'S.xml', {}).config;
}

/** A system with these files. */
const system = (files: Readonly<Record<string, string>>) => (path: string) => files[path] ?? null;

describe('udp-buffers', () => {
  const buffers = (rmem: number, wmem: number, bind: string) =>
    udpBuffers(config(bind), system({ '/proc/sys/net/core/rmem_max': `${rmem}\n`, '/proc/sys/net/core/wmem_max': `${wmem}\n` }));

  test.each([
    [8 * MIB, 8 * MIB, WEBRTC, 'ok', undefined],
    [4 * MIB, 4 * MIB, SRT, 'ok', undefined],
    [4 * MIB, 8 * MIB, `${SRT}${WEBRTC}`, 'warning', `net.core.rmem_max=${8 * MIB}`],
    [212_992, 212_992, SRT, 'warning', `net.core.rmem_max=${4 * MIB} net.core.wmem_max=${4 * MIB}`],
    [212_992, 212_992, '', 'ok', undefined],
  ] as const)('of %d and %d for %s are %s', (rmem, wmem, bind, status, settings) => {
    const { status: said, remedy } = buffers(rmem, wmem, bind);
    expect(said).toBe(status);
    if (settings === undefined) expect(remedy).toBeUndefined();
    else expect(remedy).toBe(`sysctl -w ${settings}, and persist it in /etc/sysctl.d/`);
  });

  test('are ok when the system does not report them', () => {
    expect(udpBuffers(config(SRT), system({}))).toMatchObject({ status: 'ok', text: expect.stringContaining('cannot be read') });
  });
});

test.each([
  [null, 'ok'],
  [{ limit: 100_000, used: 30 }, 'ok'],
  [{ limit: 1024, used: 30 }, 'warning'],
  [{ limit: 128, used: 30 }, 'problem'],
] as const)('descriptors: %j are %s', (given, status) => {
  expect(descriptors(config(), given).status).toBe(status);
});

describe('ulimits', () => {
  const limits = (processes: string, addressSpace: string): string =>
    `Limit                     Soft Limit           Hard Limit           Units
Max data size             unlimited            unlimited            bytes
Max processes             ${processes}                 200000               processes
Max address space         ${addressSpace}            unlimited            bytes
`;
  const judged = (text: string) => ulimits(system({ '/proc/self/limits': text }));

  test('that are high enough are ok', () => {
    expect(judged(limits('100000', 'unlimited'))).toMatchObject({ status: 'ok' });
    expect(ulimits(system({}))).toMatchObject({ status: 'ok' });
  });

  test('that are too low are reported, each with its effect', () => {
    expect(judged(limits('100', '4000000000'))).toMatchObject({
      status: 'warning',
      text: 'max processes is 100 (ulimit -u): threads and transcoder processes may not start; max address space is 4000000000 (ulimit -v): the runtime reserves more memory than it uses, and may not start',
    });
  });
});

describe('container', () => {
  const judged = (files: Readonly<Record<string, string>>, memory = 8 * GIB) => container(config(), system(files), { cores: 4, memory });

  test('without limits is ok, and too little memory is a warning', () => {
    expect(judged({})).toEqual({ name: 'container', status: 'ok', text: '8 GiB of memory, 4 cores' });
    expect(judged({}, 256 * MIB)).toMatchObject({ status: 'warning', remedy: 'provide at least 512 MiB' });
  });

  test('version 2: the smallest limit of the group and its ancestors applies', () => {
    const files = {
      '/proc/self/cgroup': '0::/system.slice/millrace.service\n',
      '/sys/fs/cgroup/system.slice/memory.max': `${GIB}\n`,
      '/sys/fs/cgroup/system.slice/millrace.service/memory.max': 'max\n',
      '/sys/fs/cgroup/system.slice/millrace.service/cpu.max': '150000 100000\n',
      '/sys/fs/cgroup/system.slice/cpu.max': 'max 100000\n',
      '/sys/fs/cgroup/system.slice/millrace.service/pids.max': '100\n',
    };
    expect(judged(files)).toEqual({
      name: 'container',
      status: 'warning',
      text: 'memory is limited to 1 GiB of 8 GiB, CPU time to 1.5 of 4 cores, at most 100 threads and processes',
      remedy: 'set WorkerCount of Bind/Publishers to 2: 4 delivery threads share that time; allow 256 threads and processes (pids)',
    });
  });

  test('version 2 in a container, where its own group is the root', () => {
    const files = { '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': `${256 * MIB}`, '/sys/fs/cgroup/cpu.max': 'max 100000' };
    expect(judged(files)).toMatchObject({
      status: 'warning',
      text: 'memory is limited to 256 MiB of 8 GiB, 4 cores',
      remedy: 'provide at least 512 MiB',
    });
  });

  test('version 1: each controller has its own tree, and a huge number means no limit', () => {
    const files = {
      '/proc/self/cgroup': '4:memory:/docker/a\n3:cpu,cpuacct:/docker/b\n',
      '/sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes': '9223372036854771712',
      '/sys/fs/cgroup/memory/docker/memory.limit_in_bytes': `${2 * GIB}`,
      '/sys/fs/cgroup/cpu/docker/b/cpu.cfs_quota_us': '400000',
      '/sys/fs/cgroup/cpu/docker/b/cpu.cfs_period_us': '100000',
      '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1',
      '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000',
    };
    expect(judged(files)).toMatchObject({ status: 'ok', text: 'memory is limited to 2 GiB of 8 GiB, 4 cores' });
  });
});
