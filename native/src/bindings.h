// Functions over handles that JavaScript calls, in groups.
#pragma once

#include <node_api.h>

namespace millrace {

void ExportFanout(napi_env env, napi_value exports);
void ExportDtls(napi_env env, napi_value exports);
void ExportSrtp(napi_env env, napi_value exports);

}  // namespace millrace
