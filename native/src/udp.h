// UDP sockets on the event loop, as JavaScript sees them: `src/protocols/udp/native-udp-socket.ts` gives them types.
#pragma once

#include <node_api.h>

namespace millrace {

void ExportUdp(napi_env env, napi_value exports);

}  // namespace millrace
