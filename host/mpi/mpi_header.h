// SPDX-License-Identifier: Apache-2.0
// Purpose: the one place that includes the host MPI's header: <mpi_abi.h> (MPI-5 standard ABI) if
// TOMBOLO_MPI_ABI is defined, else <mpi.h> of MPICH or Open MPI. Files of mpi/ include only this.
// Invariants: MH1 using a predefined handle or callback constant (MPI_INT, MPI_COMM_WORLD,
//                 MPI_WIN_NULL_COPY_FN, ...) leaves no undefined symbol behind: a constant that
//                 Open MPI defines as the address of a global is looked up once, at run time.
//             MH2 functions are reached through host/mpi/host.h, never by name.
// Thread safety: constants may be used from any thread, after the host MPI was loaded.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#define OMPI_WANT_MPI_INTERFACE_WARNING 0

#if defined(TOMBOLO_MPI_ABI)
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif

#include "host/mpi/symbols.h"

#if defined(OPEN_MPI)
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) \
  (static_cast<type>(::tombolo::mpi::host_symbol<#global>()))

#define TOMBOLO_HOST_CALLBACK(type, global) \
  (reinterpret_cast<type*>(::tombolo::mpi::host_symbol<#global>()))
#undef MPI_TYPE_NULL_DELETE_FN
#undef MPI_TYPE_NULL_COPY_FN
#undef MPI_TYPE_DUP_FN
#undef MPI_COMM_NULL_DELETE_FN
#undef MPI_COMM_NULL_COPY_FN
#undef MPI_COMM_DUP_FN
#undef MPI_WIN_NULL_DELETE_FN
#undef MPI_WIN_NULL_COPY_FN
#undef MPI_WIN_DUP_FN
#define MPI_TYPE_NULL_DELETE_FN \
  TOMBOLO_HOST_CALLBACK(MPI_Type_delete_attr_function, OMPI_C_MPI_TYPE_NULL_DELETE_FN)
#define MPI_TYPE_NULL_COPY_FN \
  TOMBOLO_HOST_CALLBACK(MPI_Type_copy_attr_function, OMPI_C_MPI_TYPE_NULL_COPY_FN)
#define MPI_TYPE_DUP_FN TOMBOLO_HOST_CALLBACK(MPI_Type_copy_attr_function, OMPI_C_MPI_TYPE_DUP_FN)
#define MPI_COMM_NULL_DELETE_FN \
  TOMBOLO_HOST_CALLBACK(MPI_Comm_delete_attr_function, OMPI_C_MPI_COMM_NULL_DELETE_FN)
#define MPI_COMM_NULL_COPY_FN \
  TOMBOLO_HOST_CALLBACK(MPI_Comm_copy_attr_function, OMPI_C_MPI_COMM_NULL_COPY_FN)
#define MPI_COMM_DUP_FN TOMBOLO_HOST_CALLBACK(MPI_Comm_copy_attr_function, OMPI_C_MPI_COMM_DUP_FN)
#define MPI_WIN_NULL_DELETE_FN \
  TOMBOLO_HOST_CALLBACK(MPI_Win_delete_attr_function, OMPI_C_MPI_WIN_NULL_DELETE_FN)
#define MPI_WIN_NULL_COPY_FN \
  TOMBOLO_HOST_CALLBACK(MPI_Win_copy_attr_function, OMPI_C_MPI_WIN_NULL_COPY_FN)
#define MPI_WIN_DUP_FN TOMBOLO_HOST_CALLBACK(MPI_Win_copy_attr_function, OMPI_C_MPI_WIN_DUP_FN)
#endif

#if !defined(OPEN_MPI) && !defined(TOMBOLO_MPI_ABI)
#undef MPI_DUP_FN
#define MPI_DUP_FN (::tombolo::mpi::host_symbol<"MPIR_Dup_fn">())
#endif

// True where the header declares the functions that take counts of type MPI_Count.
#if MPI_VERSION >= 4
#define TOMBOLO_HAVE_LARGE_COUNT 1
#else
#define TOMBOLO_HAVE_LARGE_COUNT 0
#endif

// True where the header declares MPI sessions (Open MPI 5 does, though it states MPI 3.1).
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define TOMBOLO_HAVE_SESSIONS 1
#else
#define TOMBOLO_HAVE_SESSIONS 0
#endif
