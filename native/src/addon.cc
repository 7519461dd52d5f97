// The functions that JavaScript can call; `src/native/addon.ts` has their types.
#include <node_api.h>

#include "answers.h"
#include "bindings.h"
#include "door.h"
#include "gzip.h"
#include "memory_file.h"
#include "memory.h"
#include "napi_export.h"
#include "notify.h"
#include "tcp.h"
#include "tls.h"
#include "udp.h"

NAPI_MODULE_INIT() {
  using namespace millrace;
  ExportFanout(env, exports);
  ExportDtls(env, exports);
  ExportSrtp(env, exports);
  Export<MemoryFileOpen>(env, exports, "memoryFileOpen");
  Export<MemoryFileClose>(env, exports, "memoryFileClose");
  Export<TcpSend>(env, exports, "tcpSend");
  Export<TcpSendMemoryFile>(env, exports, "tcpSendMemoryFile");
  Export<TcpReceive>(env, exports, "tcpReceive");
  Export<GzipText>(env, exports, "gzipText");
  ExportTls(env, exports);
  ExportAnswers(env, exports);
  Export<DoorOpen>(env, exports, "doorOpen");
  Export<DoorClose>(env, exports, "doorClose");
  Export<DoorShare>(env, exports, "doorShare");
  Export<TrimMemory>(env, exports, "trimMemory");
  Export<NotifySend>(env, exports, "notifySend");
  Export<UdpOpen>(env, exports, "udpOpen");
  Export<UdpClose>(env, exports, "udpClose");
  Export<UdpSend>(env, exports, "udpSend");
  Export<UdpAwaitRoom>(env, exports, "udpAwaitRoom");
  Export<UdpTake>(env, exports, "udpTake");
  Export<UdpAlarm>(env, exports, "udpAlarm");
  Export<UdpErrorText>(env, exports, "udpErrorText");
  Export<UdpParse>(env, exports, "udpParse");
  Export<UdpText>(env, exports, "udpText");
  Export<UdpFigures>(env, exports, "udpCounters");
  return exports;
}
