# Types whose objects only kwire makes: T(), T.__new__(T) and pickles of Python code raise TypeError.
cdef extern from *:
    """
    static int kw_seal(PyTypeObject *type) {
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
    """
    int seal "kw_seal"(type kind) except -1
