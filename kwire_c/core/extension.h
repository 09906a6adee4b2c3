/* Include Python.h first. Helpers of all extensions for CPython's C API. */
#ifndef KWIRE_EXTENSION_H
#define KWIRE_EXTENSION_H

#ifdef __clang__
#define KWIRE_COMPILER __VERSION__
#else
#define KWIRE_COMPILER "GCC " __VERSION__
#endif

/* Raises the exception that is set, or MemoryError if there is none. */
static inline int kw_raise_set(void) {
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return -1;
}

/* A place that threads move on by kw_claim, which gives 0 if another one did so meanwhile: also without the GIL. */
static inline Py_ssize_t kw_claimed(const Py_ssize_t *place) { return __atomic_load_n(place, __ATOMIC_ACQUIRE); }

static inline int kw_claim(Py_ssize_t *place, Py_ssize_t from, Py_ssize_t to) {
    return __atomic_compare_exchange_n(place, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Lets only kwire create objects of a type: T(), T.__new__(T) and unpickling raise TypeError. */
static inline int kw_seal(PyTypeObject *type) {
    type->tp_new = NULL; /* T.__new__ as compiled by Cython in T's own module does not use these */
    type->tp_vectorcall = NULL;
    type->tp_flags |= Py_TPFLAGS_DISALLOW_INSTANTIATION;
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *names = PyType_GetDict(type);
#else
    PyObject *names = type->tp_dict;
    Py_XINCREF(names);
#endif
    int status = names == NULL ? -1 : PyDict_DelItemString(names, "__new__");
    Py_XDECREF(names);
    PyType_Modified(type);
    return status;
}

#endif
