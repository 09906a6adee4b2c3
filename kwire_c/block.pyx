"""A pinned buffer: the input, or the decompressed payload of one batch."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t

cimport cython


cdef extern from *:
    """
    #ifdef __clang__
    #define KWIRE_COMPILER __VERSION__
    #else
    #define KWIRE_COMPILER "GCC " __VERSION__
    #endif
    """
    const char *KWIRE_COMPILER

COMPILER = KWIRE_COMPILER.decode()


@cython.final
@cython.freelist(64)
@cython.no_gc
cdef class Block:
    """Keeps one contiguous buffer exported for as long as records or columns point into it."""

    def __cinit__(self, data):
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.data = <const uint8_t *> self.view.buf
        self.size = self.view.len

    def __dealloc__(self):
        PyBuffer_Release(&self.view)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, <void *> self.data, self.size, 1, flags)


cdef Block pin(object data):
    """A Block over any buffer; TypeError (BufferError where it is not contiguous) for what is none."""
    return Block.__new__(Block, data)
