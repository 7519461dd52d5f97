import { describe, expect, it } from 'vitest';
import { parseServerConfig } from './index.ts';

function read(elements: string) {
  const bind = '<Bind><Managers/></Bind>';
  return parseServerConfig(`<Server version="8"><Type>origin</Type><IP>*</IP>${elements}${bind}</Server>`, 'Server.xml', {}).config;
}

describe('limits and proxies', () => {
  it('have default values, and no proxy is trusted', () => {
    const { limits, trustedProxies } = read('');
    expect(limits).toEqual({
      perAddress: { publishers: 256, viewers: 5000, signalling: 256, keyTrials: 20 },
      perApplication: { streams: 1000 },
    });
    expect(trustedProxies).toEqual({ address: [], proxyProtocol: { http: false, rtmp: false } });
  });

  it('are read from their elements', () => {
    const limits = '<Limits><PerAddress><Viewers>0</Viewers></PerAddress><PerApplication><Streams>7</Streams></PerApplication></Limits>';
    const proxies =
      '<TrustedProxies><Address>10.0.0.0/8</Address><Address>::1</Address><ProxyProtocol><HTTP>true</HTTP></ProxyProtocol></TrustedProxies>';
    const config = read(limits + proxies);
    expect([config.limits.perAddress.viewers, config.limits.perApplication.streams]).toEqual([0, 7]);
    expect(config.trustedProxies).toEqual({ address: ['10.0.0.0/8', '::1'], proxyProtocol: { http: true, rtmp: false } });
  });

  it.each([
    [
      '<TrustedProxies><Address>proxy.example</Address></TrustedProxies>',
      "Address must be an IP address or a network as 192.0.2.0/24, but got 'proxy.example'",
    ],
    ['<Limits><PerAddress><Viewers>-1</Viewers></PerAddress></Limits>', 'Viewers'],
  ])('%s is refused', (elements, message) => {
    expect(() => read(elements)).toThrow(message);
  });
});
