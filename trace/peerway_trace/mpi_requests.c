/* Requests of MPI from the call that starts one to the call that finds it complete; a part of mpi.c. */
#include "mpi_table.c"

static uint64_t pw_handle(MPI_Request request) {
  uint64_t handle = 0;
  memcpy(&handle, &request, sizeof request);
  return handle;
}

/* A message that was probed lies in the same table, where no request can be. */
static uint64_t pw_handle_of_message(MPI_Message message) {
  uint64_t handle = 0;
  memcpy(&handle, &message, sizeof message);
  return handle ^ 1ull << 63;
}

/* The event of what began long ago and ended with this call. */
static void pw_whole(const pw_call* call, const pw_request* request, int kind, const char* name) {
  pw_call message = *call;
  const uint64_t end = call->event.begin + call->event.duration;
  message.event.kind = (unsigned)kind & 0x3ff;
  pw_rename(&message, name);
  message.event.begin = request->begin;
  message.event.duration = (end - request->begin) & ((1ull << 44) - 1);
  message.event.peer = request->peer;
  message.event.tag = request->tag;
  message.event.bytes = request->bytes & 0xfffffffffffull;
  pw_where(&message, request->group);
  pw_trace_add(message.writer, &message.event);
}

/* `started` describes it; the rest is that of the call. A request for which nothing is recorded is kept as
 * well, because others may have its handle. */
static void pw_started(const pw_call* call, MPI_Request request, pw_request started) {
  if (call->writer == NULL) return;
  started.handle = pw_handle(request);
  started.begin = call->event.begin;
  started.bytes = call->event.bytes;
  started.peer = call->event.peer;
  started.tag = call->event.tag;
  started.active = !started.persistent;
  if (request != MPI_REQUEST_NULL)
    pw_keep_request(started);
  else if (started.active && !started.silent && !started.both && started.kind != PW_TRACE_RECEIVED)
    pw_whole(call, &started, started.kind,
             started.whole); /* an MPI may have no request for what is complete */
}

/* A message was probed, and is kept for who receives it: its receive is posted by that. */
static void pw_probed(const pw_call* call, MPI_Comm comm, MPI_Message message) {
  if (call->writer == NULL || message == MPI_MESSAGE_NULL || message == MPI_MESSAGE_NO_PROC) return;
  pw_keep_request((pw_request){.handle = pw_handle_of_message(message),
                               .begin = call->event.begin,
                               .group = pw_group_of(comm),
                               .kind = PW_TRACE_RECEIVED,
                               .active = 1});
}

/* A communicator that is there when a request is complete. */
static void pw_born_later(MPI_Comm parent, MPI_Comm* child, MPI_Request request) {
  pw_group* group = pw_group_of(parent);
  if (!pw_ready || pw_inside > 1 || group == NULL || request == MPI_REQUEST_NULL) return;
  pw_keep_request((pw_request){.handle = pw_handle(request),
                               .group = group,
                               .active = 1,
                               .child = child,
                               .number = ++group->children});
}

/* A persistent request goes again. */
static void pw_restarted(const pw_call* call, MPI_Request request) {
  if (call->writer == NULL || request == MPI_REQUEST_NULL) return;
  pw_request* known = pw_take_request(pw_handle(request));
  if (known == NULL) return;
  known->active = 1;
  known->begin = call->event.begin;
  const pw_request restarted = *known;
  pw_put_back(known);
  if (restarted.silent) return;
  pw_call message = *call;
  message.event.kind = restarted.kind == PW_TRACE_SENT       ? PW_TRACE_ISEND
                       : restarted.kind == PW_TRACE_RECEIVED ? PW_TRACE_IRECV
                                                             : PW_TRACE_COLLECTIVE;
  pw_rename(&message, restarted.start);
  message.event.duration = 0;
  message.event.peer = restarted.peer;
  message.event.tag = restarted.tag;
  message.event.bytes = restarted.bytes & 0xfffffffffffull;
  pw_where(&message, restarted.group);
  pw_trace_add(message.writer, &message.event);
}

/* What is known of a request or a message, before a call that may complete it: at its end another thread may
 * have the handle. */
static pw_request* pw_look(MPI_Request request) {
  return request != MPI_REQUEST_NULL ? pw_take_request(pw_handle(request)) : NULL;
}

static pw_request* pw_look_at_message(MPI_Message message) {
  return message != MPI_MESSAGE_NULL ? pw_take_request(pw_handle_of_message(message)) : NULL;
}

static int pw_cancelled(const MPI_Status* status) {
  int cancelled = 0;
  return PMPI_Test_cancelled(status, &cancelled) == MPI_SUCCESS && cancelled;
}

/* What has arrived; 0: nothing. */
static int pw_one_received(pw_request* request, const MPI_Status* status) {
  if (pw_cancelled(status)) return 0;
  if (status->MPI_SOURCE == MPI_PROC_NULL) return 0;
  request->bytes = pw_received_bytes(status, request->bytes);
  request->peer = pw_world_of(request->group, status->MPI_SOURCE);
  request->tag = status->MPI_TAG;
  return 1;
}

/* Not every MPI says in the status of MPI_Isendrecv what it received (MPICH 4.0 does not): it counts where it
 * is possible, and else what the program asked for. */
static void pw_both_received(pw_request* request, const MPI_Status* status) {
  const int any_source = request->from == MPI_ANY_SOURCE, any_tag = request->from_tag == MPI_ANY_TAG;
  const int reported = (any_source || status->MPI_SOURCE == request->from) &&
                       (any_tag || status->MPI_TAG == request->from_tag);
  request->bytes = reported ? pw_received_bytes(status, request->room) : request->room;
  request->peer = pw_world_of(request->group, any_source ? status->MPI_SOURCE : request->from);
  request->tag = any_tag ? status->MPI_TAG : request->from_tag;
}

/* It is over: it is given up, unless it may start again. */
static void pw_over(pw_request* known) {
  known->active = 0;
  if (known->persistent)
    pw_put_back(known);
  else
    pw_free_request(known);
}

/* A request has been found complete in `call`, which has ended. */
static void pw_completed(const pw_call* call, pw_request* known, const MPI_Status* status) {
  if (known == NULL) return;
  pw_request request = *known;
  pw_over(known);
  if (!request.active) return;
  if (request.child != NULL) {
    if (*request.child != MPI_COMM_NULL)
      pw_made(call, pw_add_comm(*request.child, request.group, request.number));
    return;
  }
  if (call->writer == NULL || request.silent) return;
  if (request.both && request.peer >= 0) pw_whole(call, &request, PW_TRACE_SENT, "send, until complete");
  if (request.kind != PW_TRACE_RECEIVED) {
    if (request.kind == PW_TRACE_SENT && pw_cancelled(status))
      pw_whole(call, &request, PW_TRACE_CANCELLED, "send, until cancelled");
    else
      pw_whole(call, &request, request.kind, request.whole);
    return;
  }
  if (request.both)
    pw_both_received(&request, status);
  else if (!pw_one_received(&request, status))
    return;
  if (request.peer >= 0) pw_whole(call, &request, PW_TRACE_RECEIVED, "receive, until complete");
}

/* A message that was probed gets a request, which ends what the probe began. */
static void pw_message_started(const pw_call* call, pw_request* known, MPI_Request request) {
  if (known == NULL) return;
  pw_request probed = *known;
  pw_free_request(known);
  if (call->writer == NULL || request == MPI_REQUEST_NULL) return;
  probed.handle = pw_handle(request);
  pw_keep_request(probed);
}

static void pw_forgotten(MPI_Request request) { pw_free_request(pw_look(request)); }

/* What is known of the requests of a call that overwrites them, and statuses where the program wants none. */
typedef struct pw_many {
  int count;          /* 0: nothing is known */
  pw_request** known; /* null: of that request nothing is known, or it is complete */
  MPI_Status* statuses;
  void* memory;
} pw_many;

static pw_many pw_keep(int count, const MPI_Request* requests, MPI_Status* statuses) {
  pw_many kept = {0, NULL, statuses, NULL};
  const int none = __atomic_load_n(&pw_requests_count, __ATOMIC_RELAXED) == 0;
  if (none || pw_inside > 1 || count <= 0) return kept;
  kept.memory = malloc((size_t)count * (sizeof(pw_request*) + sizeof(MPI_Status)));
  if (kept.memory == NULL) return kept;
  kept.known = (pw_request**)kept.memory;
  if (statuses == MPI_STATUSES_IGNORE) kept.statuses = (MPI_Status*)(kept.known + count);
  kept.count = count;
  for (int i = 0; i < count; ++i) kept.known[i] = pw_look(requests[i]);
  return kept;
}

static void pw_one_completed(const pw_call* call, pw_many* kept, int index, const MPI_Status* status) {
  if (index < 0 || index >= kept->count) return; /* MPI_UNDEFINED, or nothing is known */
  pw_completed(call, kept->known[index], status);
  kept->known[index] = NULL;
}

/* All are, but those that a call with an error says it left. */
static void pw_all_completed(const pw_call* call, pw_many* kept, int result) {
  for (int i = 0; i < kept->count; ++i)
    if (result != MPI_ERR_IN_STATUS || kept->statuses[i].MPI_ERROR != MPI_ERR_PENDING)
      pw_one_completed(call, kept, i, &kept->statuses[i]);
}

static void pw_some_completed(const pw_call* call, pw_many* kept, int count, const int* indices) {
  for (int i = 0; kept->count > 0 && count != MPI_UNDEFINED && i < count; ++i)
    pw_one_completed(call, kept, indices[i], &kept->statuses[i]);
}

/* The others go on. The youngest goes back first, so that each finds its place at the beginning. */
static void pw_end_many(pw_many* kept) {
  for (int i = kept->count; i-- > 0;) pw_put_back(kept->known[i]);
  free(kept->memory);
}
