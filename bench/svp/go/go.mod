module families

go 1.19
