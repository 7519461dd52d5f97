// The functions of JavaScript for answers that are given without it: one cache for each delivery thread, one link for each connection.
#include "answers.h"

#include "answer_link.h"
#include "napi_export.h"

namespace millrace {
namespace {

// Limits of kept answers.
constexpr size_t kMaxBody = 64 * 1024;
constexpr size_t kMaxHead = 4096;
constexpr size_t kMaxPlaces = 16 * 1024;

using SharedCache = std::shared_ptr<AnswerCache>;
using SharedLink = std::shared_ptr<AnswerLink>;

AnswerCache& CacheOf(const Arguments& arguments) { return **arguments.External<SharedCache>(0); }
AnswerLink& LinkOf(const Arguments& arguments) { return **arguments.External<SharedLink>(0); }

napi_value Truth(napi_env env, bool truth) {
  napi_value value = nullptr;
  napi_get_boolean(env, truth, &value);
  return value;
}

std::string LatinText(const Arguments& arguments, size_t n, size_t most) {
  std::string text(most + 1, '\0');
  size_t length = 0;
  if (arguments.value(n) == nullptr || napi_get_value_string_latin1(arguments.env(), arguments.value(n), text.data(), text.size(), &length) != napi_ok)
    throw BadArgument{"a string is expected"};
  if (length >= most) throw BadArgument{"a string is too long"};
  text.resize(length);
  return text;
}

// answersOpen(mostFollowers) → cache
napi_value AnswersOpen(const Arguments& arguments) {
  napi_value handle = nullptr;
  napi_create_external(arguments.env(), new SharedCache(std::make_shared<AnswerCache>(arguments.Unsigned(0))),
                       [](napi_env, void* data, void*) { delete static_cast<SharedCache*>(data); }, nullptr, &handle);
  return handle;
}

// answersLink(cache, descriptor) → link of a connection of this thread that Node.js reads, or null
napi_value AnswersLink(const Arguments& arguments) {
  napi_env env = arguments.env();
  uv_loop_t* loop = nullptr;
  SharedLink link;
  if (napi_get_uv_event_loop(env, &loop) == napi_ok)
    link = AnswerLink::Open(*arguments.External<SharedCache>(0), loop, static_cast<int>(arguments.Unsigned(1)));
  napi_value handle = nullptr;
  if (link == nullptr) napi_get_null(env, &handle);
  else napi_create_external(env, new SharedLink(std::move(link)), [](napi_env, void* data, void*) { delete static_cast<SharedLink*>(data); }, nullptr,
                            &handle);
  return handle;
}

napi_value HasReleased(const Arguments& arguments, AnswerCache* cache) { return Truth(arguments.env(), !cache->released().empty()); }

// answersArm(link), answersDisarm(link), answersUnlink(link), answersRelease(link): see `AnswerLink`. Functions that may release requests
// return whether any are left for `answersReleaseAll`
napi_value AnswersArm(const Arguments& arguments) {
  LinkOf(arguments).Arm();
  return nullptr;
}
napi_value AnswersDisarm(const Arguments& arguments) {
  LinkOf(arguments).Disarm();
  return nullptr;
}
napi_value AnswersUnlink(const Arguments& arguments) {
  LinkOf(arguments).Close();
  return HasReleased(arguments, &LinkOf(arguments).cache());
}
napi_value AnswersRelease(const Arguments& arguments) {
  LinkOf(arguments).Release();
  return nullptr;
}

// answersReleaseAll(cache)
napi_value AnswersReleaseAll(const Arguments& arguments) {
  AnswerLink::ReleaseAll(&CacheOf(arguments));
  return nullptr;
}

// answersReleaseFeed(cache, feed)
napi_value AnswersReleaseFeed(const Arguments& arguments) {
  AnswerLink::ReleaseFeed(&CacheOf(arguments), arguments.Unsigned(1));
  return nullptr;
}

// answersLead(link, target, variant, feed) → whether others may wait for the answer to this request
napi_value AnswersLead(const Arguments& arguments) {
  PlainRequest request;
  AnswerLink& link = LinkOf(arguments);
  const bool is_same = link.Asked(&request) && request.target == LatinText(arguments, 1, AnswerCache::kMaxRequest);
  return Truth(arguments.env(), is_same && link.Lead(request, arguments.Unsigned(2), arguments.Unsigned(3)));
}

// answersEndLead(link); answersFollowers(link) → number of waiting requests; answersHeldFor(link) → ms
napi_value AnswersEndLead(const Arguments& arguments) {
  LinkOf(arguments).EndLead();
  return HasReleased(arguments, &LinkOf(arguments).cache());
}
napi_value AnswersFollowers(const Arguments& arguments) { return MakeNumber(arguments.env(), LinkOf(arguments).followers()); }
napi_value AnswersHeldFor(const Arguments& arguments) { return MakeNumber(arguments.env(), LinkOf(arguments).held_for()); }

// answersRequests(link) → requests answered here or abandoned while they waited; answersIdle(link) → ms since the last activity, 0 while an
// answer is being sent or a request waits, negative without any
napi_value AnswersRequests(const Arguments& arguments) { return MakeNumber(arguments.env(), LinkOf(arguments).requests()); }
napi_value AnswersIdle(const Arguments& arguments) { return MakeNumber(arguments.env(), LinkOf(arguments).idle()); }

// Reads (link, target, variant, feed, head, billed), the arguments of both functions that keep answers. Null when the answer cannot be kept
std::unique_ptr<Answer> CommonOf(const Arguments& arguments, PlainRequest* request) {
  // JavaScript may be answering another request than the last.
  if (!LinkOf(arguments).Asked(request) || request->target != LatinText(arguments, 1, AnswerCache::kMaxRequest)) return nullptr;
  auto answer = std::make_unique<Answer>();
  answer->feed = arguments.Unsigned(3);
  answer->head = LatinText(arguments, 4, kMaxHead);
  answer->billed = static_cast<uint64_t>(arguments.Number(5));
  return answer;
}

bool KeepCommon(const Arguments& arguments, const PlainRequest& request, std::unique_ptr<Answer> answer) {
  AnswerCache& cache = LinkOf(arguments).cache();
  const uint32_t variant = arguments.Unsigned(2);
  cache.Judge(request.lines, variant);
  return cache.Keep(request, variant, std::move(answer));
}

// answersKeep(link, target, variant, feed, head, billed, body, tailLength, places, sums) → whether it is kept. `places`: offsets of the
// tail in the body; `sums`: for a body in gzip form, see `Answer`, otherwise empty
napi_value AnswersKeep(const Arguments& arguments) {
  napi_env env = arguments.env();
  PlainRequest request;
  std::unique_ptr<Answer> answer = CommonOf(arguments, &request);
  uint32_t count = 0;
  if (arguments.value(6) == nullptr || napi_get_array_length(env, arguments.value(6), &count) != napi_ok) throw BadArgument{"an array is expected"};
  if (answer == nullptr) return Truth(env, false);
  for (uint32_t n = 0; n < count; n += 1) {
    napi_value element = nullptr;
    napi_get_element(env, arguments.value(6), n, &element);
    const Bytes bytes = BytesOf(env, element);
    if (answer->body.size() + bytes.length > kMaxBody) return Truth(env, false);
    answer->body.append(reinterpret_cast<const char*>(bytes.data), bytes.length);
  }
  answer->tail_length = arguments.Unsigned(7);
  answer->places = arguments.Words(8);
  const std::vector<uint32_t> sums = arguments.Words(9);
  if (answer->places.size() > kMaxPlaces || (sums.size() != 0 && sums.size() != 3)) throw BadArgument{"answersKeep: wrong number of places or sums"};
  for (const uint32_t place : answer->places) {
    if (place > answer->body.size() || answer->tail_length > answer->body.size() - place) throw BadArgument{"answersKeep: a tail lies outside of the body"};
  }
  if (!sums.empty()) {
    if (answer->body.size() < 8 || answer->places.size() != 1) throw BadArgument{"answersKeep: no body in gzip form"};
    answer->summed = true;
    answer->zero_sum = sums[0];
    answer->zero_tail_sum = sums[1];
    answer->shifts = sums[2];
  }
  return Truth(env, KeepCommon(arguments, request, std::move(answer)));
}

// answersKeepMemoryFile(link, target, variant, feed, head, billed, file) → whether it is kept
napi_value AnswersKeepMemoryFile(const Arguments& arguments) {
  PlainRequest request;
  std::unique_ptr<Answer> answer = CommonOf(arguments, &request);
  if (answer == nullptr) return Truth(arguments.env(), false);
  answer->file = *arguments.External<SharedMemoryFile>(6);
  return Truth(arguments.env(), KeepCommon(arguments, request, std::move(answer)));
}

// answersFlush(cache, feed): forgets the answers of a feed; a negative feed forgets all answers, judged lines and sessions
napi_value AnswersFlush(const Arguments& arguments) {
  const double feed = arguments.Number(1);
  if (feed < 0) CacheOf(arguments).FlushAll();
  else CacheOf(arguments).Flush(static_cast<uint32_t>(feed));
  return HasReleased(arguments, &CacheOf(arguments));
}

// answersSession(cache, token, feed, expiresAt) → its number
napi_value AnswersSession(const Arguments& arguments) {
  const uint32_t session = CacheOf(arguments).OpenSession(LatinText(arguments, 1, AnswerCache::kMaxRequest), arguments.Unsigned(2), arguments.Number(3));
  return MakeNumber(arguments.env(), session);
}

// answersForget(cache, session)
napi_value AnswersForget(const Arguments& arguments) {
  CacheOf(arguments).CloseSession(arguments.Unsigned(1));
  return nullptr;
}

// answersSweep(cache, limit): ends connections that have not taken an answer in `limit` ms
napi_value AnswersSweep(const Arguments& arguments) {
  AnswerLink::Sweep(arguments.Number(1));
  return nullptr;
}

// answersWaiting(cache) → number of requests that wait for another's answer
napi_value AnswersWaiting(const Arguments& arguments) { return MakeNumber(arguments.env(), CacheOf(arguments).followers()); }

napi_value MakeNumbers(napi_env env, const std::vector<double>& numbers) {
  napi_value list = nullptr;
  napi_create_array_with_length(env, numbers.size(), &list);
  for (uint32_t n = 0; n < numbers.size(); n += 1) napi_set_element(env, list, n, MakeNumber(env, numbers[n]));
  return list;
}

// answersTake(cache) → since the last call: { requests, bytes, aborts, timeouts, refused, held, crowded, left, feeds: [feed, bytes, …], sessions: [session, bytes, …] }
napi_value AnswersTake(const Arguments& arguments) {
  napi_env env = arguments.env();
  AnswerCache& cache = CacheOf(arguments);
  napi_value object = nullptr;
  napi_create_object(env, &object);
  AnswerCache::Figures& figures = cache.figures();
  Set(env, object, "requests", static_cast<double>(figures.requests));
  Set(env, object, "bytes", static_cast<double>(figures.bytes));
  Set(env, object, "aborts", static_cast<double>(figures.aborts));
  Set(env, object, "timeouts", static_cast<double>(figures.timeouts));
  Set(env, object, "refused", static_cast<double>(figures.refused));
  Set(env, object, "held", static_cast<double>(figures.held));
  Set(env, object, "crowded", static_cast<double>(figures.crowded));
  Set(env, object, "left", static_cast<double>(figures.left));
  figures = {};
  Set(env, object, "feeds", MakeNumbers(env, cache.TakeFeeds()));
  Set(env, object, "sessions", MakeNumbers(env, cache.TakeSessions()));
  return object;
}

}  // namespace

void ExportAnswers(napi_env env, napi_value exports) {
  Export<AnswersOpen>(env, exports, "answersOpen");
  Export<AnswersLink>(env, exports, "answersLink");
  Export<AnswersArm>(env, exports, "answersArm");
  Export<AnswersDisarm>(env, exports, "answersDisarm");
  Export<AnswersUnlink>(env, exports, "answersUnlink");
  Export<AnswersRelease>(env, exports, "answersRelease");
  Export<AnswersReleaseAll>(env, exports, "answersReleaseAll");
  Export<AnswersReleaseFeed>(env, exports, "answersReleaseFeed");
  Export<AnswersLead>(env, exports, "answersLead");
  Export<AnswersEndLead>(env, exports, "answersEndLead");
  Export<AnswersFollowers>(env, exports, "answersFollowers");
  Export<AnswersHeldFor>(env, exports, "answersHeldFor");
  Export<AnswersWaiting>(env, exports, "answersWaiting");
  Export<AnswersRequests>(env, exports, "answersRequests");
  Export<AnswersIdle>(env, exports, "answersIdle");
  Export<AnswersKeep>(env, exports, "answersKeep");
  Export<AnswersKeepMemoryFile>(env, exports, "answersKeepMemoryFile");
  Export<AnswersFlush>(env, exports, "answersFlush");
  Export<AnswersSession>(env, exports, "answersSession");
  Export<AnswersForget>(env, exports, "answersForget");
  Export<AnswersSweep>(env, exports, "answersSweep");
  Export<AnswersTake>(env, exports, "answersTake");
}

}  // namespace millrace
