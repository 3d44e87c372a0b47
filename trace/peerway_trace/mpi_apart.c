/* Communicators that their members alone make, and not all of a parent; a part of mpi.c. What they were
 * called, who they are, and how many such these made before is what all members agree on. */

typedef struct pw_apart { /* so many of one kind */
  struct pw_apart* next;
  char kind[32];
  uint32_t members;
  int count;
} pw_apart;

static uint32_t pw_hash_of(const pw_group* group) {
  uint64_t sum = 0;
  for (int i = 0; i < group->size; ++i) {
    uint64_t hash = (uint64_t)(group->world[i] + 2) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
    sum += hash ^ hash >> 32; /* in any order */
  }
  return (uint32_t)(sum ^ sum >> 32);
}

static int pw_count_apart(const char* kind, uint32_t members) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pw_apart* known;
  pthread_mutex_lock(&mutex);
  pw_apart* entry = known;
  while (entry != NULL && (entry->members != members || strcmp(entry->kind, kind) != 0)) entry = entry->next;
  if (entry == NULL && (entry = (pw_apart*)calloc(1, sizeof *entry)) != NULL) {
    snprintf(entry->kind, sizeof entry->kind, "%s", kind);
    entry->members = members;
    entry->next = known;
    known = entry;
  }
  const int count = entry != NULL ? ++entry->count : 0;
  pthread_mutex_unlock(&mutex);
  return count;
}

/* `name`: what the program calls it, or null, and then the tag tells it. */
static void pw_born_apart(const pw_call* call, const MPI_Comm* child, const char* name, int tag) {
  if (!pw_ready || pw_inside > 1 || *child == MPI_COMM_NULL) return;
  int inter = 0;
  pw_group* group = pw_group_of_comm(*child, &inter);
  char kind[32];
  if (name != NULL)
    snprintf(kind, sizeof kind, "%s", name);
  else
    snprintf(kind, sizeof kind, "%s %d", inter ? "inter" : "group", tag);
  uint32_t members = pw_hash_of(group);
  if (inter) { /* both sides name it alike */
    MPI_Group local;
    PMPI_Comm_group(*child, &local);
    pw_group* own = pw_new_group(local);
    PMPI_Group_free(&local);
    members += pw_hash_of(own);
    free(own->world);
    free(own);
  }
  snprintf(group->name, sizeof group->name, "%s.%d:%d~%08x", kind, pw_count_apart(kind, members),
           inter || group->size == 0 ? -1 : group->world[0], members);
  PMPI_Comm_set_attr(*child, pw_key_of_comm, group);
  pw_made(call, group);
}
