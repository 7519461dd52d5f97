// The functions of the fan-out for JavaScript. `src/services/webrtc/transport/fanout/native-fanout.ts` has their types.
#include <cstring>
#include <memory>

#include "bindings.h"
#include "bytes.h"
#include "fanout.h"
#include "napi_export.h"

namespace millrace {
namespace {

constexpr size_t kMaxSlots = 4;
constexpr size_t kMaxExtension = 64;

// A fan-out with its callback into JavaScript.
struct Machine {
  napi_env env = nullptr;
  napi_threadsafe_function wake = nullptr;
  std::unique_ptr<Fanout> fanout;
};

// Runs on the main thread: hands every waiting event to the callback.
void Deliver(napi_env env, napi_value callback, void* context, void*) {
  auto* machine = static_cast<Machine*>(context);
  if (env == nullptr || machine->fanout == nullptr) return;
  napi_value receiver = nullptr;
  napi_get_undefined(env, &receiver);
  for (const Event& event : machine->fanout->events().Take()) {
    napi_handle_scope scope = nullptr;
    napi_open_handle_scope(env, &scope);
    const bool addressed = event.type == EventType::kStun || event.type == EventType::kDtls;
    napi_value arguments[] = {
        MakeNumber(env, static_cast<double>(event.type)),
        MakeNumber(env, event.id),
        MakeBuffer(env, event.bytes.data(), event.bytes.size()),
        MakeText(env, addressed ? HostOf(event.from) : ""),
        MakeNumber(env, addressed ? PortOf(event.from) : 0),
        MakeNumber(env, event.at),
    };
    const napi_status status = napi_call_function(env, receiver, callback, 6, arguments, nullptr);
    napi_close_handle_scope(env, scope);
    if (status == napi_pending_exception) {
      // The callback is ours and must not throw; an exception counts as uncaught.
      napi_value error = nullptr;
      napi_get_and_clear_last_exception(env, &error);
      napi_fatal_exception(env, error);
    }
    if (machine->fanout == nullptr) return;
  }
}

void Stop(Machine* machine) {
  machine->fanout.reset();
  if (machine->wake != nullptr) napi_release_threadsafe_function(machine->wake, napi_tsfn_abort);
  machine->wake = nullptr;
}

void StopAtExit(void* data) { Stop(static_cast<Machine*>(data)); }

void FreeMachine(napi_env env, void* data, void*) {
  auto* machine = static_cast<Machine*>(data);
  napi_remove_env_cleanup_hook(env, StopAtExit, machine);
  Stop(machine);
  delete machine;
}

Fanout* Running(const Arguments& arguments) {
  auto* machine = arguments.External<Machine>(0);
  if (machine->fanout == nullptr) throw BadArgument{"the fanout was closed"};
  return machine->fanout.get();
}

// open(threads, mode, history, callback)
napi_value Open(const Arguments& arguments) {
  napi_env env = arguments.env();
  const size_t threads = arguments.Unsigned(0);
  const uint32_t mode = arguments.Unsigned(1);
  const size_t history = arguments.Unsigned(2);
  if (threads < 1 || threads > 64 || mode > 2 || history > 65536) throw BadArgument{"open: a number is out of range"};
  auto machine = std::make_unique<Machine>();
  machine->env = env;
  Machine* raw = machine.get();
  napi_value name = MakeText(env, "millrace fanout");
  if (napi_create_threadsafe_function(env, arguments.value(3), nullptr, name, 0, 1, nullptr, nullptr, raw, Deliver, &raw->wake) != napi_ok)
    throw BadArgument{"open: a callback is expected"};
  napi_unref_threadsafe_function(env, raw->wake);
  machine->fanout = std::make_unique<Fanout>(threads, static_cast<SendMode>(mode), history,
                                             [raw] { napi_call_threadsafe_function(raw->wake, nullptr, napi_tsfn_nonblocking); });
  napi_value handle = nullptr;
  napi_create_external(env, machine.release(), FreeMachine, nullptr, &handle);
  napi_add_env_cleanup_hook(env, StopAtExit, raw);
  return handle;
}

// close(fanout)
napi_value Close(const Arguments& arguments) {
  Stop(arguments.External<Machine>(0));
  return nullptr;
}

// bind(fanout, host, port) → [id, port]
napi_value Bind(const Arguments& arguments) {
  napi_env env = arguments.env();
  uint32_t id = 0;
  uint16_t port = 0;
  std::string error;
  if (!Running(arguments)->Bind(arguments.Text(1), static_cast<uint16_t>(arguments.Unsigned(2)), &id, &port, &error)) {
    napi_throw_error(env, "FANOUT_BIND", error.c_str());
    return nullptr;
  }
  napi_value pair = nullptr;
  napi_create_array_with_length(env, 2, &pair);
  napi_set_element(env, pair, 0, MakeNumber(env, id));
  napi_set_element(env, pair, 1, MakeNumber(env, port));
  return pair;
}

napi_value Truth(napi_env env, bool truth) {
  napi_value value = nullptr;
  napi_get_boolean(env, truth, &value);
  return value;
}

// send(fanout, socket, host, port, bytes)
napi_value Send(const Arguments& arguments) {
  const Bytes bytes = arguments.Buffer(4);
  return Truth(arguments.env(), Running(arguments)->Send(arguments.Unsigned(1), arguments.Text(2),
                                                         static_cast<uint16_t>(arguments.Unsigned(3)), bytes.data, bytes.length));
}

// openSource(fanout, clockRate, epochMs, fec) → id
napi_value OpenSource(const Arguments& arguments) {
  return MakeNumber(arguments.env(), Running(arguments)->OpenSource(arguments.Unsigned(1), arguments.Number(2), arguments.Boolean(3)));
}

napi_value CloseSource(const Arguments& arguments) {
  Running(arguments)->CloseSource(arguments.Unsigned(1));
  return nullptr;
}

// push(fanout, source, timestamp, keyframe, marker, payloads, sizes)
napi_value Push(const Arguments& arguments) {
  const Bytes bytes = arguments.Buffer(5);
  return Truth(arguments.env(), Running(arguments)->Push(arguments.Unsigned(1), arguments.Unsigned(2), arguments.Boolean(3),
                                                         arguments.Boolean(4), bytes.data, bytes.length, arguments.Words(6)));
}

// openViewer(fanout, cname, slots: Uint32Array of [ssrc, payloadType, rtxSsrc, rtxPayloadType, firstSequence, sendTimeAt,
// transportSequenceAt, extensionLength, redPayloadType, fecPayloadType]…, extensions: Uint8Array back to back) → id
napi_value OpenViewer(const Arguments& arguments) {
  constexpr size_t kFields = 10;
  auto viewer = std::make_unique<Viewer>();
  viewer->cname = arguments.Text(1);
  const std::vector<uint32_t> words = arguments.Words(2);
  const Bytes extensions = arguments.Buffer(3);
  if (words.size() % kFields != 0 || words.size() > kMaxSlots * kFields) throw BadArgument{"openViewer: wrong number of slot fields"};
  size_t taken = 0;
  for (size_t at = 0; at < words.size(); at += kFields) {
    auto slot = std::make_unique<Slot>();
    slot->ssrc = words[at];
    slot->payload_type = static_cast<uint8_t>(words[at + 1] & 0x7f);
    slot->rtx_ssrc = words[at + 2];
    slot->rtx_payload_type = static_cast<uint8_t>(words[at + 3] & 0x7f);
    slot->next_index = words[at + 4] & 0x7fff;
    slot->rtx_index = words[at + 4] & 0x7fff;
    slot->send_time_at = words[at + 5];
    slot->transport_sequence_at = words[at + 6];
    const size_t length = words[at + 7];
    slot->red_payload_type = static_cast<uint8_t>(words[at + 8] & 0x7f);
    slot->fec_payload_type = static_cast<uint8_t>(words[at + 9] & 0x7f);
    // Parities exist only inside RED, so both payload types belong together.
    if ((slot->red_payload_type == 0) != (slot->fec_payload_type == 0)) throw BadArgument{"openViewer: RED and ULPFEC come together"};
    if (length > kMaxExtension || length % 4 != 0 || taken + length > extensions.length ||
        (slot->send_time_at != 0 && slot->send_time_at + 3 > length) ||
        (slot->transport_sequence_at != 0 && slot->transport_sequence_at + 2 > length))
      throw BadArgument{"openViewer: an extension does not fit"};
    slot->extension.assign(extensions.data + taken, extensions.data + taken + length);
    taken += length;
    viewer->slots.push_back(std::move(slot));
  }
  return MakeNumber(arguments.env(), Running(arguments)->OpenViewer(std::move(viewer)));
}

napi_value CloseViewer(const Arguments& arguments) {
  Running(arguments)->CloseViewer(arguments.Unsigned(1));
  return nullptr;
}

// setKeys(fanout, viewer, profile, localKey, localSalt, remoteKey, remoteSalt)
napi_value SetKeys(const Arguments& arguments) {
  const uint32_t number = arguments.Unsigned(2);
  if (number != 1 && number != 7) throw BadArgument{"setKeys: unknown SRTP profile"};
  const auto profile = static_cast<Profile>(number);
  const uint8_t* parts[4];
  for (size_t n = 0; n < 4; n += 1) {
    const Bytes bytes = arguments.Buffer(3 + n);
    if (bytes.length != (n % 2 == 0 ? kMasterKeyLength : SaltLength(profile))) throw BadArgument{"setKeys: a key or salt has the wrong length"};
    parts[n] = bytes.data;
  }
  return Truth(arguments.env(), Running(arguments)->SetKeys(arguments.Unsigned(1), profile, parts[0], parts[1], parts[2], parts[3]));
}

// connect(fanout, viewer, socket, host, port); hear has the same parameters; connectTcp(fanout, viewer)
napi_value Connect(const Arguments& arguments) {
  return Truth(arguments.env(), Running(arguments)->Connect(arguments.Unsigned(1), arguments.Unsigned(2), arguments.Text(3),
                                                            static_cast<uint16_t>(arguments.Unsigned(4))));
}
napi_value Hear(const Arguments& arguments) {
  return Truth(arguments.env(), Running(arguments)->Hear(arguments.Unsigned(1), arguments.Unsigned(2), arguments.Text(3),
                                                         static_cast<uint16_t>(arguments.Unsigned(4))));
}
napi_value ConnectTcp(const Arguments& arguments) {
  return Truth(arguments.env(), Running(arguments)->ConnectTcp(arguments.Unsigned(1)));
}

// play(fanout, viewer, slot, source)
napi_value Play(const Arguments& arguments) {
  return Truth(arguments.env(), Running(arguments)->Play(arguments.Unsigned(1), arguments.Unsigned(2), arguments.Unsigned(3)));
}

// inject(fanout, viewer, packet)
napi_value Inject(const Arguments& arguments) {
  const Bytes bytes = arguments.Buffer(2);
  return Truth(arguments.env(),
               Running(arguments)->Inject(arguments.Unsigned(1), std::string(reinterpret_cast<char*>(bytes.data), bytes.length)));
}

// sendRtcp(fanout, viewer, packet)
napi_value SendRtcp(const Arguments& arguments) {
  const Bytes bytes = arguments.Buffer(2);
  return Truth(arguments.env(),
               Running(arguments)->SendRtcp(arguments.Unsigned(1), std::vector<uint8_t>(bytes.data, bytes.data + bytes.length)));
}

// viewerCounters(fanout, viewer) → object or null
napi_value ViewerFigures(const Arguments& arguments) {
  napi_env env = arguments.env();
  const ViewerCounters* counters = Running(arguments)->viewer(arguments.Unsigned(1));
  napi_value object = nullptr;
  if (counters == nullptr) {
    napi_get_null(env, &object);
    return object;
  }
  napi_create_object(env, &object);
  Set(env, object, "packets", static_cast<double>(counters->packets.load()));
  Set(env, object, "bytes", static_cast<double>(counters->bytes.load()));
  Set(env, object, "nacked", static_cast<double>(counters->nacked.load()));
  Set(env, object, "resent", static_cast<double>(counters->resent.load()));
  Set(env, object, "sendErrors", static_cast<double>(counters->send_errors.load()));
  Set(env, object, "received", static_cast<double>(counters->received.load()));
  Set(env, object, "refused", static_cast<double>(counters->refused.load()));
  return object;
}

// readSends(fanout, viewer, first, into): writes time (µs) and bytes for each number from `first` on, 0 for unknown numbers
napi_value ReadSends(const Arguments& arguments) {
  const SendLog* log = Running(arguments)->log(arguments.Unsigned(1));
  const uint32_t first = arguments.Unsigned(2);
  size_t length = 0;
  uint32_t* into = arguments.WordsInPlace(3, &length);
  for (size_t n = 0; 2 * n + 1 < length; n += 1) {
    into[2 * n] = 0;
    into[2 * n + 1] = log == nullptr ? 0 : log->Read(static_cast<uint16_t>(first + n), into + 2 * n);
  }
  return nullptr;
}

// counters(fanout) → object
napi_value Figures(const Arguments& arguments) {
  napi_env env = arguments.env();
  Fanout* fanout = Running(arguments);
  uint64_t datagrams = 0, calls = 0, errors = 0, congested = 0, dropped = 0, resent = 0, too_old = 0, ignored = 0;
  for (const auto& shard : fanout->shards()) {
    const ThreadCounters& counters = shard->counters();
    datagrams += counters.send.datagrams.load();
    calls += counters.send.calls.load();
    errors += counters.send.errors.load();
    congested += counters.send.congested.load();
    dropped += counters.dropped_frames.load();
    resent += counters.resent.load();
    too_old += counters.too_old.load();
    ignored += counters.ignored.load();
  }
  const ReceiverCounters& receiver = fanout->receiver().counters();
  napi_value object = nullptr;
  napi_create_object(env, &object);
  Set(env, object, "viewers", static_cast<double>(fanout->viewers()));
  Set(env, object, "datagramsSent", static_cast<double>(datagrams));
  Set(env, object, "sendCalls", static_cast<double>(calls));
  Set(env, object, "sendErrors", static_cast<double>(errors));
  Set(env, object, "congested", static_cast<double>(congested));
  Set(env, object, "droppedFrames", static_cast<double>(dropped));
  Set(env, object, "resent", static_cast<double>(resent));
  Set(env, object, "lostTooOld", static_cast<double>(too_old));
  Set(env, object, "ignoredNacks", static_cast<double>(ignored));
  Set(env, object, "datagramsReceived", static_cast<double>(receiver.datagrams.load()));
  Set(env, object, "strangers", static_cast<double>(receiver.strangers.load()));
  Set(env, object, "nacks", static_cast<double>(receiver.nacks.load()));
  Set(env, object, "droppedEvents", static_cast<double>(fanout->events().dropped()));
  Set(env, object, "droppedStrangers", static_cast<double>(fanout->events().dropped_strangers()));
  Set(env, object, "droppedInjected", static_cast<double>(receiver.dropped_injected.load()));
  return object;
}

}  // namespace

void ExportFanout(napi_env env, napi_value exports) {
  Export<Open>(env, exports, "open");
  Export<Close>(env, exports, "close");
  Export<Bind>(env, exports, "bind");
  Export<Send>(env, exports, "send");
  Export<OpenSource>(env, exports, "openSource");
  Export<CloseSource>(env, exports, "closeSource");
  Export<Push>(env, exports, "push");
  Export<OpenViewer>(env, exports, "openViewer");
  Export<CloseViewer>(env, exports, "closeViewer");
  Export<SetKeys>(env, exports, "setKeys");
  Export<Connect>(env, exports, "connect");
  Export<Hear>(env, exports, "hear");
  Export<ConnectTcp>(env, exports, "connectTcp");
  Export<Play>(env, exports, "play");
  Export<Inject>(env, exports, "inject");
  Export<SendRtcp>(env, exports, "sendRtcp");
  Export<ViewerFigures>(env, exports, "viewerCounters");
  Export<ReadSends>(env, exports, "readSends");
  Export<Figures>(env, exports, "counters");
}

}  // namespace millrace
