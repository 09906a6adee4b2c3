"use strict"; window.kafkaRecords = {inspect: async () => ({rows: [], error: null, message: null, header: null})};
