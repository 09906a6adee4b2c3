/* Needs Python.h first. What every extension may need of CPython. */
#ifndef KWIRE_EXTENSION_H
#define KWIRE_EXTENSION_H

#ifdef __clang__
#define KWIRE_COMPILER __VERSION__
#else
#define KWIRE_COMPILER "GCC " __VERSION__
#endif

/* The exception that is set comes out of the caller; where there is none, memory was short. */
static inline int kw_raise_set(void) {
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return -1;
}

/* Makes a type whose objects only kwire makes: T(), T.__new__(T) and pickles of Python code raise TypeError. */
static inline int kw_seal(PyTypeObject *type) {
    type->tp_new = NULL; /* what Cython compiles T.__new__ to in T's own module does not go by these */
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
