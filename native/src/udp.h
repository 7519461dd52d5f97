// UDP sockets on the event loop for JavaScript; `src/native/udp/native-udp-socket.ts` has their types.
#pragma once

#include "napi_values.h"

namespace millrace {

napi_value UdpOpen(const Arguments& arguments);
napi_value UdpClose(const Arguments& arguments);
napi_value UdpSend(const Arguments& arguments);
napi_value UdpAwaitRoom(const Arguments& arguments);
napi_value UdpTake(const Arguments& arguments);
napi_value UdpAlarm(const Arguments& arguments);
napi_value UdpErrorText(const Arguments& arguments);
napi_value UdpParse(const Arguments& arguments);
napi_value UdpText(const Arguments& arguments);
napi_value UdpFigures(const Arguments& arguments);

}  // namespace millrace
