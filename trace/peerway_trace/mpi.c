/* The calls of MPI as `peerway trace` records them: what the generated wrappers (mpi.py) share. Compiled by
 * the mpicc of the MPI at hand and preloaded into its programs. Peers are ranks in MPI_COMM_WORLD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

#include "peerway/trace/recorder.h"

typedef struct pw_group { /* of a communicator or a window: who its ranks are */
  char name[64];
  int size, children, windows, *world;
} pw_group;

typedef struct pw_call {
  pw_trace_writer* writer; /* null: nothing is recorded */
  pw_trace_event event;
} pw_call;

typedef struct pw_request { /* one that was started, or may be started again; or a message that was probed */
  struct pw_request* next;
  uint64_t handle, order, begin;
  pw_group* group;
  uint64_t bytes;
  int kind, peer, tag; /* kind: PW_TRACE_SENT, PW_TRACE_RECEIVED or PW_TRACE_COLLECTIVE_DONE */
  int persistent, active;
  int silent;                /* nothing is recorded of it */
  int both;                  /* of MPI_Isendrecv: a receive, with the peer, tag and bytes of the send; ... */
  int from, from_tag;        /* ... whom and what it receives from, as the program gave it, ... */
  uint64_t room;             /* ... and how many bytes at most */
  const char *start, *whole; /* names of its events */
  MPI_Comm* child;           /* of MPI_Comm_idup: the communicator, once it is complete ... */
  int number;                /* ... and which child of `group` it is */
} pw_request;

/* The source of its rings: which MPI it is, for the measured curves of that one. */
#if defined(OPEN_MPI)
#define PW_SOURCE "openmpi"
#elif defined(MPICH_VERSION)
#define PW_SOURCE "mpich"
#else
#define PW_SOURCE "mpi"
#endif

static int pw_ready; /* between the first MPI_Init and the last MPI_Finalize, in a process that records */
static MPI_Group pw_world; /* all ranks */
static int pw_key_of_comm, pw_key_of_win;
static unsigned pw_freed;           /* communicators so far: their handles come again */
static _Thread_local int pw_inside; /* MPI's own calls of MPI are not the program's */

/* ---- calls */

static void pw_enter(pw_call* call, int kind, const char* name, const void* caller) {
  call->writer = NULL;
  if (++pw_inside > 1 || !pw_ready || !pw_trace_recording()) return;
  pw_trace_writer* writer = pw_trace_mine != NULL ? pw_trace_mine : pw_trace_open(PW_SOURCE);
  call->writer = writer;
  if (writer == NULL) return;
  memset(&call->event, 0, sizeof call->event);
  call->event.kind = (unsigned)kind & 0x3ff;
  call->event.name = pw_trace_name(writer, name, strlen(name)) & 0x3ff;
  /* A call from Fortran comes from MPI's own library, and the place in the program is not known. */
  call->event.site = pw_trace_place(writer, caller, "libmpi") & 0x3ff;
  call->event.peer = call->event.tag = -1;
}

static void pw_begin(pw_call* call) {
  if (call->writer != NULL) pw_trace_begin(call->writer, &call->event);
}

static void pw_end(pw_call* call) {
  if (call->writer != NULL) pw_trace_end(call->writer, &call->event);
}

/* A test that found nothing is counted, and is no event: programs make millions of them. */
static void pw_leave(pw_call* call, int completed) {
  --pw_inside;
  if (call->writer == NULL) return;
  if (completed)
    pw_trace_add(call->writer, &call->event);
  else
    pw_trace_count(call->writer, &call->event);
}

/* An event that is part of another has a name of its own, so that its time is not counted twice. */
static void pw_rename(pw_call* call, const char* name) {
  call->event.name = pw_trace_name(call->writer, name, strlen(name)) & 0x3ff;
}

static void pw_where(pw_call* call, const pw_group* group) {
  if (call->writer != NULL && group != NULL)
    call->event.where = pw_trace_name(call->writer, group->name, strlen(group->name)) & 0x3ff;
}

static uint64_t pw_size(MPI_Datatype type) {
  int size = 0;
  if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS || size < 0) return 0;
  return (uint64_t)size;
}

static void pw_bytes(pw_call* call, long long count, MPI_Datatype type) {
  if (call->writer != NULL && count > 0)
    call->event.bytes = ((uint64_t)count * pw_size(type)) & 0xfffffffffffull;
}

/* ---- communicators */

static int pw_world_of(const pw_group* group, int rank) {
  return group != NULL && rank >= 0 && rank < group->size ? group->world[rank] : -1;
}

static pw_group* pw_new_group(MPI_Group members) {
  pw_group* group = (pw_group*)calloc(1, sizeof *group);
  PMPI_Group_size(members, &group->size);
  group->world = (int*)malloc(sizeof(int) * 2 * (size_t)(group->size + 1));
  int* own = group->world + group->size + 1;
  for (int i = 0; i < group->size; ++i) own[i] = i;
  PMPI_Group_translate_ranks(members, group->size, own, pw_world, group->world);
  for (int i = 0; i < group->size; ++i)
    if (group->world[i] == MPI_UNDEFINED) group->world[i] = -1; /* of another world */
  return group;
}

/* Of a communicator to others: those; its name is to be given. */
static pw_group* pw_group_of_comm(MPI_Comm comm, int* inter) {
  MPI_Group members;
  PMPI_Comm_test_inter(comm, inter);
  if (*inter)
    PMPI_Comm_remote_group(comm, &members);
  else
    PMPI_Comm_group(comm, &members);
  pw_group* group = pw_new_group(members);
  PMPI_Group_free(&members);
  return group;
}

/* `parent` gave birth to it as its child of that number, by a collective call, so that all its members count
 * alike. */
static pw_group* pw_add_comm(MPI_Comm comm, const pw_group* parent, int number) {
  int inter = 0;
  pw_group* group = pw_group_of_comm(comm, &inter);
  const int first = group->size > 0 ? group->world[0] : -1;
  if (comm == MPI_COMM_WORLD)
    snprintf(group->name, sizeof group->name, "world");
  else if (comm == MPI_COMM_SELF)
    snprintf(group->name, sizeof group->name, "self");
  else if (parent != NULL)
    snprintf(group->name, sizeof group->name, "%.40s.%d:%d", parent->name, number, inter ? -1 : first);
  else
    snprintf(group->name, sizeof group->name, "%d from %d", group->size, first);
  PMPI_Comm_set_attr(comm, pw_key_of_comm, group);
  return group;
}

static pw_group* pw_group_of(MPI_Comm comm) {
  static _Thread_local struct {
    MPI_Comm comm;
    unsigned freed;
    pw_group* group;
  } last;
  if (!pw_ready || comm == MPI_COMM_NULL) return NULL;
  const unsigned freed = __atomic_load_n(&pw_freed, __ATOMIC_ACQUIRE);
  if (last.group != NULL && last.comm == comm && last.freed == freed) return last.group;
  void* known = NULL;
  int has_group = 0;
  PMPI_Comm_get_attr(comm, pw_key_of_comm, &known, &has_group);
  last.group = has_group ? (pw_group*)known : pw_add_comm(comm, NULL, 0);
  last.comm = comm;
  last.freed = freed;
  return last.group;
}

/* A communicator or a window was made or freed at the end of a call. */
static void pw_moment(const pw_call* call, int kind, const char* name, const pw_group* of) {
  if (call->writer == NULL || of == NULL) return;
  pw_call moment = *call;
  moment.event.kind = (unsigned)kind & 0x3ff;
  pw_rename(&moment, name);
  pw_where(&moment, of);
  moment.event.begin += moment.event.duration;
  moment.event.duration = moment.event.bytes = 0;
  moment.event.peer = moment.event.tag = -1;
  pw_trace_add(moment.writer, &moment.event);
}

static void pw_made(const pw_call* call, const pw_group* comm) {
  pw_moment(call, PW_TRACE_COMM_MADE, "communicator made", comm);
}

static void pw_born(const pw_call* call, MPI_Comm parent, const MPI_Comm* child) {
  if (!pw_ready || pw_inside > 1) return;
  pw_group* group = pw_group_of(parent);
  if (group != NULL) ++group->children;
  if (*child != MPI_COMM_NULL) pw_made(call, pw_add_comm(*child, group, group != NULL ? group->children : 0));
}

#include "mpi_apart.c"

/* To how many ranks this one sends in a collective of neighbours. */
static int pw_neighbours(MPI_Comm comm) {
  int kind = MPI_UNDEFINED, rank = 0, to = 0, from = 0, weighted = 0;
  PMPI_Topo_test(comm, &kind);
  if (kind == MPI_CART && PMPI_Cartdim_get(comm, &to) == MPI_SUCCESS) return 2 * to;
  if (kind == MPI_DIST_GRAPH) PMPI_Dist_graph_neighbors_count(comm, &from, &to, &weighted);
  if (kind == MPI_GRAPH && PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS)
    PMPI_Graph_neighbors_count(comm, rank, &to);
  return to;
}

#include "mpi_windows.c"

/* A message to or from nobody is none. */
static void pw_message(pw_call* call, MPI_Comm comm, int peer, int tag, long long count, MPI_Datatype type) {
  if (call->writer == NULL) return;
  const pw_group* group = pw_group_of(comm);
  pw_where(call, group);
  pw_bytes(call, count, type);
  call->event.peer = pw_world_of(group, peer);
  call->event.tag = tag;
  if (peer == MPI_PROC_NULL) call->event.kind = PW_TRACE_CALL;
}

static uint64_t pw_received_bytes(const MPI_Status* status, uint64_t posted) {
  MPI_Count count = 0;
  if (PMPI_Get_elements_x(status, MPI_BYTE, &count) != MPI_SUCCESS || count < 0) return posted;
  return (uint64_t)count;
}

/* Says what arrived in place of what was asked for. */
static void pw_arrived(pw_call* call, MPI_Comm comm, const MPI_Status* status) {
  if (call->writer == NULL || call->event.kind == PW_TRACE_CALL) return;
  call->event.peer = pw_world_of(pw_group_of(comm), status->MPI_SOURCE);
  call->event.tag = status->MPI_TAG;
  call->event.bytes = pw_received_bytes(status, call->event.bytes) & 0xfffffffffffull;
}

#include "mpi_requests.c"

/* ---- beginning and end */

static pthread_mutex_t pw_life_mutex = PTHREAD_MUTEX_INITIALIZER;
static int pw_lives; /* MPI_Init and sessions that have not ended */

#ifdef MPI_SESSION_NULL
/* Where the program has sessions alone, the world is that of one of our own: groups end with their session.
 */
static MPI_Session pw_session = MPI_SESSION_NULL;

static int pw_begin_session(void) {
  int (*real)(MPI_Info, MPI_Errhandler, MPI_Session*);
  *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Session_init");
  if (real == NULL || real(MPI_INFO_NULL, MPI_ERRORS_RETURN, &pw_session) != MPI_SUCCESS) return 0;
  return PMPI_Group_from_session_pset(pw_session, "mpi://WORLD", &pw_world) == MPI_SUCCESS;
}

static void pw_end_session(void) {
  int (*real)(MPI_Session*);
  *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Session_finalize");
  if (pw_session != MPI_SESSION_NULL && real != NULL) real(&pw_session);
}
#else
static int pw_begin_session(void) { return 0; }
static void pw_end_session(void) {}
#endif

static void pw_mpi_begin(int session) {
  int rank = 0;
  if (pw_trace_attach() == 0) return;
  pthread_mutex_lock(&pw_life_mutex);
  if (pw_lives++ == 0 &&
      (session ? pw_begin_session() : PMPI_Comm_group(MPI_COMM_WORLD, &pw_world) == MPI_SUCCESS)) {
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &pw_key_of_comm, NULL);
    PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &pw_key_of_win, NULL);
    PMPI_Group_rank(pw_world, &rank);
    pw_ready = 1;
    pw_trace_writer* writer = pw_trace_mine != NULL ? pw_trace_mine : pw_trace_open(PW_SOURCE);
    if (writer != NULL) writer->ring->rank = rank;
  }
  pthread_mutex_unlock(&pw_life_mutex);
}

static void pw_mpi_end(void) {
  pthread_mutex_lock(&pw_life_mutex);
  if (pw_lives > 0 && --pw_lives == 0 && pw_ready) {
    if (pw_trace_mine != NULL) pw_trace_read_clock(pw_trace_mine, 1);
    pw_ready = 0;
    PMPI_Group_free(&pw_world);
    pw_end_session();
  }
  pthread_mutex_unlock(&pw_life_mutex);
}
