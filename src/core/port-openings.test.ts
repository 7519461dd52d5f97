import { expect, test } from 'vitest';
import { PortOpenings, StartProblem } from './port-openings.ts';

const refused = (text: string) => async (): Promise<number> => {
  throw new Error(text);
};

test('all occupied ports are reported together, and any other failure at once', async () => {
  const openings = new PortOpenings();
  expect(await openings.open('RTMP port 1935 (Bind/Providers/RTMP/Port)', refused('listen EADDRINUSE: 0.0.0.0:1935'))).toBe(null);
  expect(await openings.open('HTTP port 3333', async () => 3333)).toBe(3333);
  expect(await openings.open('API port 80', refused('listen EACCES: permission denied 0.0.0.0:80'))).toBe(null);
  await expect(openings.open('OVT port 9000', refused('it broke'))).rejects.toThrow('OVT port 9000 cannot be opened: it broke');
  expect(() => openings.check()).toThrow(
    new StartProblem(
      'RTMP port 1935 (Bind/Providers/RTMP/Port) cannot be opened: listen EADDRINUSE: 0.0.0.0:1935; ' +
        'API port 80 cannot be opened: listen EACCES: permission denied 0.0.0.0:80',
    ),
  );
});

test('a port opened later fails with its own error', async () => {
  const openings = new PortOpenings();
  openings.check();
  await expect(openings.open('TLS port 3334', refused('listen EADDRINUSE'))).rejects.toThrow('TLS port 3334 cannot be opened');
});
