// Answers given from `AnswerCache` without JavaScript, for `src/delivery/thread/answer-cache.ts`.
#pragma once

#include <node_api.h>

namespace millrace {

// Adds the functions that `answers.cc` describes.
void ExportAnswers(napi_env env, napi_value exports);

}  // namespace millrace
