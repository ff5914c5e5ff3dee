// SPDX-License-Identifier: Apache-2.0
// Windows of processes some of which may run without the library: of one world, or brought together
// by MPI_Comm_spawn, by a port or by a socket. Whichever have it, the sums are right and none waits
// for ever. Beside them there are windows of the processes that all have it or all lack it, and of
// each world. None is over the program's own memory: Open MPI makes no such window of processes of
// two worlds, or of one process.
//
//   company world                                   with LATE set, so many seconds later
//   company spawn first|last SPAWNS COMMAND...      children are the first or the last ranks
//   company spawn apart SPAWNS COMMAND...           no window is made
//   company alone first|last SPAWNS COMMAND...      each of the parents spawns for itself
//   company multiple first|last 1 COMMAND...
//   company port server|client FILE
//   company within                                  two ranks by a port
//   company children FILE YES|NO YES|NO             children of two spawns by a port, which get
//                                                   LD_PRELOAD or not
//   company join
//   company session                                 of MPI_Session_init alone
//
// The root of the first spawn is the last rank, that of the next one rank 0, and so on.
//
// Parents give children the environment INFO_VALUE by the info key INFO_KEY, if both variables are
// set. Children say what they have as COMPANY.
#include "mpi/faults/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { times = 100 };

// All add to all.
static void add_up(MPI_Win win, const long* base, int n) {
  const long one = 1;
  MPI_Win_fence(0, win);
  for (int i = 0; i < times; ++i)
    for (int r = 0; r < n; ++r) MPI_Accumulate(&one, 1, MPI_LONG, r, 0, 1, MPI_LONG, MPI_SUM, win);
  MPI_Win_fence(0, win);
  EXPECT(*base == (long)times * n, "%ld of %ld", *base, (long)times * n);
}

static void use(MPI_Comm comm) {
  MPI_Win win;
  int n = 0;
  long* base = NULL;
  MPI_Comm_size(comm, &n);
  for (int again = 0; again < 2; ++again) {
    MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, comm, &base, &win);
    *base = 0;
    add_up(win, base, n);
    MPI_Win_free(&win);
  }
}

// Windows of the merged communicator, of a duplicate, and of the own side of it.
static void use_merged(MPI_Comm inter, int high) {
  MPI_Comm all, copy, side;
  MPI_Intercomm_merge(inter, high, &all);
  use(all);
  MPI_Comm_dup(all, &copy);
  use(copy);
  MPI_Comm_split(all, high, 0, &side);
  use(side);
  use(MPI_COMM_WORLD);
  MPI_Comm_free(&side);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&all);
}

// MPICH 5 may fail where a side leaves before the other has all of its addresses.
static void meet(MPI_Comm inter) {
  MPI_Comm all;
  MPI_Intercomm_merge(inter, 0, &all);
  MPI_Barrier(all);
  MPI_Comm_free(&all);
}

static void world(void) {
  MPI_Comm alike;
  if (getenv("LATE") != NULL) pause_ms(1000 * atoi(getenv("LATE")));
  use(MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, getenv("LD_PRELOAD") != NULL, 0, &alike);
  use(alike);
  MPI_Comm_free(&alike);
  use(MPI_COMM_SELF);
}

static MPI_Info info_of_children(void) {
  MPI_Info info = MPI_INFO_NULL;
  if (getenv("INFO_KEY") == NULL || getenv("INFO_VALUE") == NULL) return info;
  MPI_Info_create(&info);
  MPI_Info_set(info, getenv("INFO_KEY"), getenv("INFO_VALUE"));
  return info;
}

static void parents(char** argv) {
  const int multiple = strcmp(argv[1], "multiple") == 0;
  const int alone = strcmp(argv[1], "alone") == 0;
  const MPI_Comm comm = alone ? MPI_COMM_SELF : MPI_COMM_WORLD;
  const int apart = strcmp(argv[2], "apart") == 0;
  const int children_first = strcmp(argv[2], "first") == 0;
  const int spawns = atoi(argv[3]);
  for (int i = 0; i < spawns; ++i) {
    const int root = i % 2 == 0 && !alone ? ranks - 1 : 0;
    MPI_Comm inter;
    if (multiple) {
      char* commands[] = {argv[4], argv[4]};
      char** arguments[] = {argv + 5, argv + 5};
      const int each[] = {1, 1};
      const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
      MPI_Comm_spawn_multiple(2, commands, arguments, each, infos, root, comm, &inter,
                              MPI_ERRCODES_IGNORE);
    } else {
      MPI_Info info = info_of_children();
      MPI_Comm_spawn(argv[4], argv + 5, 2, info, root, comm, &inter, MPI_ERRCODES_IGNORE);
      if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    }
    if (apart)
      meet(inter);
    else
      use_merged(inter, children_first);
    MPI_Comm_disconnect(&inter);
  }
}

static void children(MPI_Comm inter, const char* place) {
  if (getenv("COMPANY") != NULL) printf("COMPANY is %s\n", getenv("COMPANY"));
  if (strcmp(place, "apart") == 0)
    meet(inter);
  else
    use_merged(inter, strcmp(place, "first") != 0);
  MPI_Comm_disconnect(&inter);
}

// Ranks 0 and 1 of one start by a port.
static void port_within(void) {
  char name[MPI_MAX_PORT_NAME] = "";
  MPI_Comm inter;
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, name);
    MPI_Send(name, sizeof name, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
  } else {
    MPI_Recv(name, sizeof name, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
  }
  use_merged(inter, rank);
  MPI_Comm_disconnect(&inter);
}

// The server tells the port by the file.
static void port(int server, const char* file) {
  char name[MPI_MAX_PORT_NAME] = "";
  MPI_Comm inter;
  if (server) {
    if (rank == 0) {
      char made[4096];
      MPI_Open_port(MPI_INFO_NULL, name);
      snprintf(made, sizeof made, "%s.made", file);
      FILE* out = fopen(made, "w");
      fputs(name, out);
      fclose(out);
      rename(made, file);
    }
    MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
  } else {
    FILE* in = NULL;
    while (rank == 0 && (in = fopen(file, "r")) == NULL) pause_ms(10);
    if (in != NULL) {
      EXPECT(fgets(name, sizeof name, in) != NULL);
      fclose(in);
    }
    MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
  }
  use_merged(inter, server);
  MPI_Comm_disconnect(&inter);
}

// A side of two children, whose parents are all of the world.
static void spawn_side(const char* preload, char* program, char* side, char* file,
                       MPI_Comm* inter) {
  char* with[] = {program, "port", side, file, NULL};
  char* without[] = {"-u", "LD_PRELOAD", program, "port", side, file, NULL};
  MPI_Comm_spawn("env", strcmp(preload, "YES") == 0 ? with : without, 2, MPI_INFO_NULL, 0,
                 MPI_COMM_WORLD, inter, MPI_ERRCODES_IGNORE);
}

static void children_meet(char** argv) {
  MPI_Comm server, client;
  spawn_side(argv[3], argv[0], "server", argv[2], &server);
  spawn_side(argv[4], argv[0], "client", argv[2], &client);
  MPI_Comm_disconnect(&client);
  MPI_Comm_disconnect(&server);
}

// Ranks 0 and 1 by a socket.
static void join(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t bytes = sizeof address;
  MPI_Comm inter = MPI_COMM_NULL;
  int end = socket(AF_INET, SOCK_STREAM, 0);
  if (rank == 0) {
    EXPECT(bind(end, (struct sockaddr*)&address, bytes) == 0 && listen(end, 1) == 0 &&
           getsockname(end, (struct sockaddr*)&address, &bytes) == 0);
    MPI_Send(&address, sizeof address, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    end = accept(end, NULL, NULL);
  } else {
    MPI_Recv(&address, sizeof address, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(connect(end, (struct sockaddr*)&address, bytes) == 0);
  }
  MPI_Comm_join(end, &inter);
  EXPECT(inter != MPI_COMM_NULL);
  if (inter != MPI_COMM_NULL) use_merged(inter, rank);
}

static int session(void) {
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
  MPI_Session session;
  EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
  MPI_Session_finalize(&session);
#endif
  return failures != 0;
}

int main(int argc, char** argv) {
  MPI_Comm parent;
  if (strcmp(argv[1], "session") == 0) return session();
  begin(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  const int by_port = strcmp(argv[1], "port") == 0;
  if (by_port)
    port(strcmp(argv[2], "server") == 0, argv[3]);
  else if (parent != MPI_COMM_NULL)
    children(parent, argv[argc - 1]);
  else if (strcmp(argv[1], "world") == 0)
    world();
  else if (strcmp(argv[1], "children") == 0)
    children_meet(argv);
  else if (strcmp(argv[1], "within") == 0)
    port_within();
  else if (strcmp(argv[1], "join") == 0)
    join();
  else
    parents(argv);
  if (by_port && parent != MPI_COMM_NULL) MPI_Comm_disconnect(&parent);
  return end();
}
